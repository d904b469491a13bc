package main

import (
	"strings"
	"testing"
)

func TestLimitCommands(t *testing.T) {
	t.Parallel()
	const answer = `[
		{"name":"default","rate_per_second":0.5,"burst":2,"reason":"slow","set_by":"ayu","set_at":"2026-11-01T00:00:00Z","expires_at":"2026-11-01T02:00:00Z","in_force":false},
		{"name":"wallet2","limit":12,"reason":"a trial","set_by":"ayu","set_at":"2026-11-01T00:00:00Z","in_force":true},
		{"name":"payout:day","amount":5000000,"transfers":9,"reason":"new","set_by":"ayu","set_at":"2026-11-01T00:00:00Z","in_force":true},
		{"name":"price:markup","markup":75,"reason":"agreed","set_by":"ayu","set_at":"2026-11-01T00:00:00Z","in_force":true}]`
	const path = "/admin/merchants/mer_1/limits"
	testAdminCommands(t, map[string]adminCommand{
		"shown": {
			args: `merchant limit|mer_1`, answer: answer, method: "GET", path: path,
			prints: "default       0.5/s  2      -      -                         2026-11-01T02:00:00Z (ended)  ayu     slow\n" +
				"wallet2       -      -      12     -                         for ever                      ayu     a trial\n" +
				"payout:day    -      -      -      Rp5.000.000, 9 transfers  for ever                      ayu     new\n" +
				"price:markup  -      -      -      Rp75                      for ever                      ayu     agreed\n",
		},
		"set": {
			args: `merchant limit|mer_1|--quota|wallet2=12|--rate|1/s|--burst|2|--for|2h|--reason|a trial`, answer: answer, method: "POST", path: path,
			body:   `{"limits":[{"name":"wallet2","limit":12},{"name":"default","rate_per_second":1,"burst":2}],"for":"2h0m0s","reason":"a trial"}`,
			prints: "a trial",
		},
		"for no time": { // which is the gateway's to refuse: left out, it would be for ever
			args: `merchant limit|mer_1|--rate|1/s|--for|0s|--reason|x`, answer: answer, method: "POST", path: path,
			body: `{"limits":[{"name":"default","rate_per_second":1}],"for":"0s","reason":"x"}`, prints: "RATE",
		},
		"two quotas, one of none": {
			args: `merchant limit|mer_1|--quota|b=0|--quota|a=7|--reason|x`, answer: answer, method: "POST", path: path,
			body: `{"limits":[{"name":"a","limit":7},{"name":"b","limit":0}],"reason":"x"}`, prints: "QUOTA",
		},
		"a rate an hour": {
			args: `merchant limit|mer_1|--rate|1800/h|--reason|x`, answer: answer, method: "POST", path: path,
			body: `{"limits":[{"name":"default","rate_per_second":0.5}],"reason":"x"}`, prints: "RATE",
		},
		"a markup and payout limits": {
			args:   `merchant limit|mer_1|--markup|0|--day-amount|5000000|--day-count|9|--destination-count|2|--repeat-within|10m|--for|24h|--reason|agreed`,
			answer: answer, method: "POST", path: path,
			body: `{"limits":[{"name":"price:markup","markup":0},{"name":"payout:day","amount":5000000,"transfers":9},` +
				`{"name":"payout:destination_day","transfers":2},{"name":"payout:repeat_within","repeat_within":"10m0s"}],"for":"24h0m0s","reason":"agreed"}`,
			prints: "MONEY",
		},
		"removed": {
			args: `merchant limit|mer_1|--remove|wallet2|--reason|over`, answer: `[]`, method: "POST", path: path + "/wallet2/remove",
			body: `{"reason":"over"}`, prints: "LIMIT",
		},
	})
}

func TestLimitsThatAreNotAskedFor(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{
		"--quota wallet2=1":                     "--reason must be given",
		"--remove wallet2":                      "--reason must be given",
		"--markup 5":                            "--reason must be given",
		"--rate 1 --reason x":                   "such as 5/s or 30/m",
		"--rate 0/s --reason x":                 "such as 5/s or 30/m",
		"--rate fast/s --reason x":              "such as 5/s or 30/m",
		"--for 2h --reason x":                   "--for needs a",
		"--for 0s --reason x":                   "--for needs a",
		"--remove a --for 0s --reason x":        "--remove goes with --reason alone",
		"--remove a --quota a=1 --reason x":     "--remove goes with --reason alone",
		"--remove a --for 2h --reason x":        "--remove goes with --reason alone",
		"--quota wallet2=many --reason nothing": "--quota: invalid",
	} {
		f := newConsole(t, 200, `{"success":true,"data":[]}`)
		code, p := run(t, f.environment(), "", append([]string{"merchant", "limit", "mer_1"}, strings.Fields(flags)...)...)
		if code == exitOK || !strings.Contains(p.errors.String(), want) || len(f.requests) > 0 {
			t.Errorf("%s: exit code %d, %s, asked %q", flags, code, &p.errors, f.requests)
		}
	}
}
