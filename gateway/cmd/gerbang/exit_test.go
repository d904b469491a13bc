package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestExitCodes runs commands against a gateway that answers as each case says: the codes
// are the same for all of them, since one place makes them.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	envelope := func(code string) string {
		return `{"success":false,"message":"No.","error_code":"` + code + `","request_id":"r1"}`
	}
	gone := map[string]string{adminURLVariable: "http://127.0.0.1:1", adminTokenVariable: token}
	for name, c := range map[string]struct {
		args, answer string
		status, want int
	}{
		"done":               {"plugin list", `{"success":true,"data":[]}`, 200, exitOK},
		"refused":            {"merchant tier mer_1 growth", envelope("INVALID_REQUEST"), 400, exitRefused},
		"without the role":   {"merchant tier mer_1 growth", envelope("SCOPE_MISSING"), 403, exitRefused},
		"without a token":    {"merchant list", envelope("AUTH_FAILED"), 401, exitRefused},
		"gateway's fault":    {"plugin list", envelope("INTERNAL"), 500, exitRefused},
		"wrong use":          {"merchant tier mer_1", "", 200, exitUsage},
		"no such command":    {"merchants", "", 200, exitUsage},
		"needs --yes":        {"key revoke mer_1 k1", "", 200, exitUsage},
		"not there":          {"merchant show mer_9", envelope("NOT_FOUND"), 404, exitNotFound},
		"nothing found":      {"find x", `{"success":true,"data":{"id":"x","movements":[]}}`, 200, exitNotFound},
		"no such exception":  {"exception resolve x --resolution done", `{"success":true,"data":[]}`, 200, exitNotFound},
		"proxy without one":  {"plugin list", "<html>", 503, exitUnreachable},
		"not a gateway":      {"plugin list", "<html>", 404, exitRefused},
		"no id":              {"merchant show $ID", "", 200, exitUsage},
		"nobody listens":     {"plugin list", "", 0, exitUnreachable},
		"database away":      {"migrate --database-url postgres://nobody@127.0.0.1:1/none?connect_timeout=1", "", 0, exitUnreachable},
		"some are not there": {"keyset reseal", `{"success":true,"data":{"primary":8,"unopened":[{"merchant_id":"m"}]}}`, 200, exitIncomplete},
		"waits for another":  {"policy activate 51f0c3 --wait --replaces x", `{"success":true,"data":{"version":"51f0c3","state":"waiting"}}`, 200, exitIncomplete},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environment := gone
			if c.status != 0 {
				environment = newConsole(t, c.status, c.answer).environment()
			}
			args := strings.Fields(c.args)
			for i, arg := range args {
				args[i] = strings.TrimPrefix(arg, "$ID") // a variable that is not set
			}
			code, p := run(t, environment, "", args...)
			if code != c.want || (code == exitOK) != (p.errors.Len() == 0) {
				t.Errorf("exit code %d, want %d: %s", code, c.want, &p.errors)
			}
			code, p = run(t, environment, "", append([]string{"--json"}, args...)...)
			if code != c.want {
				t.Errorf("with --json: exit code %d, want %d: %s", code, c.want, &p.errors)
			}
			if code == exitOK {
				return
			}
			lines := strings.Split(strings.TrimSuffix(p.errors.String(), "\n"), "\n")
			var told failed
			if err := json.Unmarshal([]byte(lines[len(lines)-1]), &told); err != nil || told.ExitCode != code || told.Message == "" {
				t.Errorf("with --json the last line is %s, %v", lines[len(lines)-1], err)
			}
			if strings.Contains(c.answer, "error_code") && (told.RequestID != "r1" || !strings.Contains(c.answer, string(told.Code)) || told.Code == "") {
				t.Errorf("with --json told %+v", told)
			}
		})
	}
}

func TestAnErrorOfTwoKindsHasTheNearestCode(t *testing.T) {
	t.Parallel()
	for want, err := range map[int]error{
		exitIncomplete: incomplete(fmt.Errorf("%w, after some", notFound(errors.New("x")))),
		exitNotFound:   fmt.Errorf("while looking: %w", notFound(errors.New("x"))),
		exitUsage:      usage(notFound(errors.New("x"))),
		exitDenies:     errDenies{errors.New("x")},
		exitRefused:    errors.New("x"),
	} {
		if got := exitCode(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}

// undoable are the commands of which nothing can be undone.
var undoable = map[string]string{
	"key revoke mer_1 k1":                                                              `{"key_id":"k1"}`,
	"connection remove mer_1 bank --mode live":                                         `{"merchant_id":"mer_1"}`,
	"transfer override m-1 --as success --reason r":                                    `{"id":"m-1"}`,
	"exception resolve --merchant m --mode live --subject s --reason r --resolution d": `{}`,
	"recovery open --reason r":                                                         `{}`,
	"statement assign p-1 m-1 --reason r":                                              `{"payment":"p-1"}`,
	"callback secret finish mer_1 --mode live":                                         `{"mode":"live"}`,
	"callback secret cancel mer_1 --mode live":                                         `{"mode":"live"}`,
	"operator token revoke sari":                                                       `[]`,
	"payment refund m-1 --amount 1000 --reason sold-out --refund-id R":                 `{"refund_id":"R"}`,
	"key rotate mer_1 k1 --overlap 0s":                                                 `{"key_id":"k2"}`,
	"operator token rotate sari --overlap 0s":                                          `{"name":"sari"}`,
}

func TestWhatCannotBeUndoneIsConfirmed(t *testing.T) {
	t.Parallel()
	for args, answer := range undoable {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			f := newConsole(t, http.StatusOK, `{"success":true,"data":`+answer+`}`)
			typing := func(terminal bool, input string, more ...string) (int, string, int) {
				t.Helper()
				p := &typed{}
				p.program = program{
					in: strings.NewReader(input), out: &p.output, err: &p.errors, inTerminal: terminal,
					getenv: func(name string) string { return f.environment()[name] },
				}
				before := len(f.requests)
				code := p.run(t.Context(), append(strings.Fields(args), more...))
				return code, p.errors.String(), len(f.requests) - before
			}
			if code, said, asked := typing(false, "yes\n"); code != exitUsage || asked != 0 || !strings.Contains(said, "--yes") {
				t.Errorf("without a terminal: exit code %d, asked %d times: %s", code, asked, said)
			}
			for _, no := range []string{"\n", "no\n", "y\n"} {
				if code, said, asked := typing(true, no); code != exitRefused || asked != 0 || !strings.Contains(said, "can't be undone") || !strings.Contains(said, "nothing was done") {
					t.Errorf("who types %q: exit code %d, asked %d times: %s", no, code, asked, said)
				}
			}
			if code, said, asked := typing(true, ""); code != exitUsage || asked != 0 || !strings.Contains(said, "--yes") {
				t.Errorf("at a terminal that ends: exit code %d, asked %d times: %s", code, asked, said)
			}
			if code, said, asked := typing(true, "yes\n"); code != exitOK || asked != 1 {
				t.Errorf("who types yes: exit code %d, asked %d times: %s", code, asked, said)
			}
			if code, said, asked := typing(false, "", "--yes"); code != exitOK || asked != 1 || said != "" {
				t.Errorf("with --yes: exit code %d, asked %d times: %s", code, asked, said)
			}
		})
	}
}

// TestARefundWithoutAnAnswerCanBeAskedForAgain: its drawn name is said before it is sent.
func TestARefundWithoutAnAnswerCanBeAskedForAgain(t *testing.T) {
	t.Parallel()
	f := newConsole(t, http.StatusBadGateway, `<html>`)
	code, p := run(t, f.environment(), "", "payment", "refund", "m-1", "--amount", "1000", "--reason", "sold out", "--yes")
	var sent struct {
		RefundID string `json:"refund_id"`
	}
	if err := json.Unmarshal([]byte(f.requests[0].body), &sent); err != nil || code == exitOK || sent.RefundID == "" ||
		!strings.Contains(p.errors.String(), "--refund-id "+sent.RefundID) {
		t.Errorf("exit code %d, sent %+v, said %s, %v", code, sent, p.errors.String(), err)
	}
}

// TestAPersonIsRemovedByWhoSaysSo: it asks first, and an overlap leaves time, so that
// nobody is asked there.
func TestAPersonIsRemovedByWhoSaysSo(t *testing.T) {
	t.Parallel()
	args := []string{"person", "remove", "ayu@example.com", "--config", filepath.Join(t.TempDir(), "none.yaml")}
	if code, p := run(t, nil, "", args...); code != exitUsage || !strings.Contains(p.errors.String(), "--yes") {
		t.Errorf("exit code %d: %s", code, &p.errors)
	}
	if code, p := run(t, nil, "", append(args, "--yes")...); code == exitOK || !strings.Contains(p.errors.String(), "none.yaml") {
		t.Errorf("with --yes: exit code %d: %s", code, &p.errors)
	}
	f := newConsole(t, http.StatusOK, `{"success":true,"data":{"key_id":"k2"}}`)
	if code, p := run(t, f.environment(), "", "key", "rotate", "mer_1", "k1"); code != exitOK {
		t.Errorf("with an overlap: exit code %d: %s", code, &p.errors)
	}
}

// TestEveryCommandThatAsksIsTested holds the list above against the commands themselves.
func TestEveryCommandThatAsksIsTested(t *testing.T) {
	t.Parallel()
	parser, err := (&program{}).parser(t.Context(), &commands{})
	if err != nil {
		t.Fatal(err)
	}
	asks := 0
	for _, leaf := range parser.Model.Leaves(false) {
		field := leaf.Target.FieldByName("confirmed")
		if !field.IsValid() || field.Type() != reflect.TypeFor[confirmed]() {
			continue
		}
		asks++
		name := strings.TrimPrefix(leaf.FullPath(), "gerbang ")
		_, action, _ := strings.Cut(name, " ")
		// keyset_test.go has the one, since it needs a file, and the other one asks before it
		// reads its configuration.
		tested := action == "prune" || name == "person remove"
		for args := range undoable {
			tested = tested || strings.HasPrefix(args, name) || strings.Contains(args, " "+action+" ") // one override for all kinds
		}
		if !tested {
			t.Errorf("%s asks, and no test holds it", name)
		}
	}
	if asks < 10 {
		t.Errorf("%d commands ask", asks)
	}
}
