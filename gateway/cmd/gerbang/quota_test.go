package main

import "testing"

func TestQuotaCommands(t *testing.T) {
	t.Parallel()
	const answer = `{"merchant_id":"mer_1","mode":"test","period":"2026-11","resets_at":"2026-12-01T00:00:00+07:00","quotas":[
		{"quota":"gone","used":3},
		{"quota":"names","limit":10000,"used":12,"remaining":9988,"operations":["/wallet1/inquiry","/transfer/inquiry"]}]}`
	testAdminCommands(t, map[string]adminCommand{
		"show": {
			args: `quota show|mer_1`, answer: answer, method: "GET", path: "/admin/merchants/mer_1/quotas?mode=live",
			prints: "names  10000  12    9988       /wallet1/inquiry /transfer/inquiry\n",
		},
		"show of test mode": {
			args: `quota show|mer_1|--mode|test`, answer: answer, method: "GET", path: "/admin/merchants/mer_1/quotas?mode=test",
			prints: "gone   -      3     -\n",
		},
	})
}
