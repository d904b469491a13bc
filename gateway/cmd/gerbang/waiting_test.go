package main

import (
	"net/http"
	"strings"
	"testing"
)

// TestTraffic prints rows of all replicas, and of one.
func TestTraffic(t *testing.T) {
	t.Parallel()
	f := newConsole(t, http.StatusOK, `{"success":true,"data":{"operations":[{"operation":"/a","admitted":3,"slowed":1}],
		"refusals":[{"merchant_id":"mer_1","mode":"live","operation":"/a","verdict":"slowed","rule":"rate 1","n":1}],
		"routes":[{"route":"POST /a","requests":4,"codes":{"OK":4},"p50_ms":2.5,"p99_ms":10}],"providers":[{"provider":"bank","method":"call","calls":2,"outcomes":{"done":2}}]}}`)
	code, p := run(t, f.environment(), "", "traffic")
	if code != exitOK || f.requests[0].path != "/admin/traffic" {
		t.Fatalf("exit code %d, asked %q: %s", code, f.requests, &p.errors)
	}
	for _, row := range []string{"/a ", "mer_1 ", "rate 1 ", "POST /a ", "2.5 ms", "map[OK:4]", "bank call"} {
		if !strings.Contains(p.output.String(), row) {
			t.Errorf("printed\n%s\nwithout %q", &p.output, row)
		}
	}
}

// TestAllThatWaits: each row ends with the command that decides it, as a shell takes it.
func TestAllThatWaits(t *testing.T) {
	t.Parallel()
	f := newConsole(t, http.StatusOK, `{"success":true,"data":{
		"overrides":[{"id":"01","merchant_id":"mer_1","mode":"live","kind":"transfer","override":{"as":"failed","operator":"ayu","reason":"bounced"}}],
		"adjustments":[{"merchant_id":"mer_1","mode":"test","kind":"credit","amount":7,"reference":"it's 7"}],
		"activations":[{"version":"aaaaaaaaaaaaaaaa","replaces":"bbbbbbbbbbbbbbbb"}],
		"approvals":[{"approval_id":"a-1","provider":"bank","sha256":"cc"}],
		"exceptions":[{"id":"e1","subject":"inv-1","reason":"amount_differs"}]}}`)
	code, p := run(t, f.environment(), "", "waiting")
	if code != exitOK || f.requests[0].path != "/admin/waiting" {
		t.Fatalf("exit code %d, asked %q: %s", code, f.requests, &p.errors)
	}
	for _, command := range []string{
		"gerbang transfer override 01 --as failed --reason WHY", `gerbang ledger approve mer_1 'it'\''s 7' --mode test`,
		"gerbang policy activate aaaaaaaaaaaa --replaces bbbbbbbbbbbb", "gerbang plugin confirm a-1", "gerbang exception resolve e1 --resolution HOW",
	} {
		if !strings.Contains(p.output.String(), "  "+command+"\n") {
			t.Errorf("printed\n%s\nwithout %q", &p.output, command)
		}
	}
}
