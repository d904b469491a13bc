package main

import (
	"os"
	"strings"
	"testing"
)

func TestPolicyTry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/data.json", []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const answer = `{"version":"0123456789abcdef","allow":false,"at":"2026-11-20T23:30:00+07:00","amount":5000,"steps":334,
		"reasons":[{"reason":"Not at night.","rule":"gerbang.refusals","file":"night.rego","line":3}],
		"limits":{"rates":[{"name":"default","rate_per_second":5,"burst":10,"per":"key"}],"quotas":[{"name":"wallet2","limit":1000}],"markup":75,
		"day":{"amount":900,"count":2},"repeat_within":"10m0s"}}`
	testAdminCommands(t, map[string]adminCommand{
		"a version": {
			args:  `policy try|--operation|/a|--merchant|mer_1|--input|-|--at|2026-11-20 23:30|--version|0123|--quote|{"fee": 1}`,
			input: `{"amount": 5000}`, answer: answer, method: "POST", path: "/admin/policy/try",
			body: `{"version":"0123","merchant":"mer_1","mode":"live","operation":"/a","input":{"amount":5000},"at":"2026-11-20 23:30","quote":{"fee":1}}`,
			prints: "verdict        denied\nversion        0123456789ab\nat             2026-11-20T23:30:00+07:00\n" +
				"reason         Not at night. (gerbang.refusals, night.rego:3)\namount         5000\nrate           default: 5/s, burst 10, per key\n" +
				"quota          wallet2: 1000 a month\nmarkup         75, and 0 products of their own\npayouts        Rp900 and 2 transfers a day\n" +
				"repeat within  10m0s\nsteps          334\n",
		},
		"a directory": {
			args: `policy try|--operation|/a|--merchant|mer_1|--mode|test|--dir|` + dir, answer: answer, method: "POST", path: "/admin/policy/try",
			body:   `{"files":{"data.json":"{}"},"merchant":"mer_1","mode":"test","operation":"/a"}`,
			prints: dir + "/night.rego:3)",
		},
	})
	const impact = `{"progress":{"decisions":1,"at":"2026-11-20T00:00:00Z"}}` // no report: what is sent counts
	f := newConsole(t, 200, impact)
	_, _ = run(t, f.environment(), "", "policy", "impact", dir)
	if len(f.requests) != 1 || !strings.Contains(f.requests[0].body, `"files":{"data.json":"{}"}`) {
		t.Errorf("policy impact asked %q: data.json alone goes with the rules in force, as with push", f.requests)
	}
	for flags, want := range map[string]string{
		"--dir " + dir + " --version 0123": "either --version or --dir",
		"--input " + dir + "/none":         "no such file",
		"--quote {":                        "--quote is not JSON",
	} {
		f := newConsole(t, 200, `{"success":true,"data":{}}`)
		code, p := run(t, f.environment(), "", append([]string{"policy", "try", "--operation", "/a", "--merchant", "m"}, strings.Fields(flags)...)...)
		if code == exitOK || !strings.Contains(p.errors.String(), want) || len(f.requests) > 0 {
			t.Errorf("%s: exit code %d, %s, asked %q", flags, code, &p.errors, f.requests)
		}
	}
}
