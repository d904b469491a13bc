package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/tenants"
)

// keysetOf reads a keyset that a command has written.
func keysetOf(t *testing.T, document []byte) *tenants.Keyset {
	t.Helper()
	k, err := tenants.ParseKeyset(document)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func keysetFile(t *testing.T) (path string, keys func() []tenants.SealingKey) {
	t.Helper()
	path = t.TempDir() + "/keyset.json"
	if code, p := run(t, nil, "", "keyset", "create", path); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &p.errors)
	}
	return path, func() []tenants.SealingKey {
		document, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return keysetOf(t, document).Keys()
	}
}

func TestAKeysetIsRotatedInItsFile(t *testing.T) {
	t.Parallel()
	path, keys := keysetFile(t)
	first := keys()[0].Number
	if code, p := run(t, nil, "", "keyset", "rotate", path); code != exitOK || !strings.Contains(p.output.String(), "gerbang keyset reseal") {
		t.Errorf("exit code %d, printed %s%s", code, &p.output, &p.errors)
	}
	second := keys()[1]
	if !second.Primary || keys()[0] != (tenants.SealingKey{Number: first}) {
		t.Errorf("keys %+v", keys())
	}
	if code, p := run(t, nil, "", "keyset", "rotate", path, "--prepare"); code != exitOK || !strings.Contains(p.output.String(), "seals nothing yet") {
		t.Errorf("exit code %d, printed %s%s", code, &p.output, &p.errors)
	}
	third := keys()[2]
	if !third.Prepared || !keys()[1].Primary {
		t.Errorf("keys %+v", keys())
	}
	code, p := run(t, nil, "", "--json", "keyset", "rotate", path)
	if want := fmt.Sprintf(`"key": %d`, third.Number); code != exitOK || !strings.Contains(p.output.String(), want) {
		t.Errorf("exit code %d, printed %s%s", code, &p.output, &p.errors)
	}
	if len(keys()) != 3 || !keys()[2].Primary {
		t.Errorf("keys %+v", keys())
	}
	if code, _ := run(t, nil, "", "keyset", "rotate", path+"/nothing"); code != exitRefused {
		t.Errorf("no file: exit code %d", code)
	}
}

// TestAKeysetGoesThroughAPipe, from what decrypts it to what encrypts it: only
// the keyset is printed, and a fault prints nothing of it.
func TestAKeysetGoesThroughAPipe(t *testing.T) {
	t.Parallel()
	code, made := run(t, nil, "", "keyset", "create", "-")
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, &made.errors)
	}
	code, rotated := run(t, nil, made.output.String(), "keyset", "rotate", "-")
	if keys := keysetOf(t, rotated.output.Bytes()).Keys(); code != exitOK || len(keys) != 2 || !keys[1].Primary {
		t.Errorf("exit code %d, keys %+v", code, keys)
	}
	if !strings.Contains(rotated.errors.String(), "seals from now on") {
		t.Errorf("said %s", &rotated.errors)
	}
	code, p := run(t, nil, "hush-hush", "keyset", "rotate", "-")
	if code != exitRefused || p.output.Len() > 0 || strings.Contains(p.errors.String(), "hush") {
		t.Errorf("exit code %d, printed %s, said %s", code, &p.output, &p.errors)
	}
}

func answerOf(keys ...string) string {
	return `{"success":true,"data":{"keys":[` + strings.Join(keys, ",") + `]}}`
}

func TestOnlyWhatSealsNothingIsPruned(t *testing.T) {
	t.Parallel()
	path, keys := keysetFile(t)
	for _, args := range [][]string{{}, {}, {"--prepare"}} {
		if code, p := run(t, nil, "", append([]string{"keyset", "rotate", path}, args...)...); code != exitOK {
			t.Fatalf("exit code %d: %s", code, &p.errors)
		}
	}
	all := keys()
	entry := func(i, values int) string {
		return fmt.Sprintf(`{"number":%d,"primary":%t,"prepared":%t,"values":%d}`, all[i].Number, all[i].Primary, all[i].Prepared, values)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ answer, says string }{
		"in use":              {answerOf(entry(0, 0), entry(1, 7), entry(2, 1), entry(3, 0)), fmt.Sprintf("key %d still seals 7 values", all[1].Number)},
		"not read yet":        {answerOf(entry(0, 0), entry(1, 0), entry(2, 0)), "does not have this keyset in force"},
		"another primary":     {answerOf(entry(0, 0), strings.Replace(entry(1, 0), "false", "true", 1), strings.Replace(entry(2, 0), "true", "false", 1), entry(3, 0)), "does not have this keyset in force"},
		"another file":        {answerOf(`{"number":1,"primary":true,"values":0}`), "Is it the right file"},
		"a key that was lost": {answerOf(strings.Replace(entry(0, 3), "{", `{"missing":true,`, 1), entry(1, 0), entry(2, 0), entry(3, 0)), "does not have this keyset in force"},
	} {
		f := newConsole(t, http.StatusOK, c.answer)
		code, p := run(t, f.environment(), "", "keyset", "prune", path, "--yes")
		after, err := os.ReadFile(path)
		if code != exitRefused || !strings.Contains(p.errors.String(), c.says) || err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: exit code %d: %s (%v)", name, code, &p.errors, err)
		}
	}
	f := newConsole(t, http.StatusOK, answerOf(entry(0, 0), entry(1, 0), entry(2, 9), entry(3, 0)))
	if code, p := run(t, f.environment(), "", "keyset", "prune", path, "--yes"); code != exitOK || !strings.Contains(p.output.String(), "2 keys were removed") {
		t.Errorf("exit code %d: %s%s", code, &p.output, &p.errors)
	}
	if want := all[2:]; !slices.Equal(keys(), want) {
		t.Errorf("left %+v, want %+v", keys(), want)
	}
}

func TestKeysetsOfARunningGateway(t *testing.T) {
	t.Parallel()
	testAdminCommands(t, map[string]adminCommand{
		"list": {
			args:   `keyset list`,
			answer: `{"keys":[{"number":7,"state":"opens","values":2},{"number":8,"primary":true,"state":"seals","values":3},{"number":9,"missing":true,"state":"missing","values":1}]}`,
			method: "GET", path: "/admin/keyset", prints: "8    seals    3\n",
		},
		"reseal": {
			args: `keyset reseal`, answer: `{"primary":8,"resealed":12,"replaced":1}`,
			method: "POST", path: "/admin/keyset/reseal", body: `{}`, prints: "sealed anew         12\n",
		},
	})
}

// TestAllAccountsAreAskedFor: the parts that the console answers are put
// together, and what it could not open is a failure at the end.
func TestAllAccountsAreAskedFor(t *testing.T) {
	t.Parallel()
	f := newConsole(t, http.StatusOK,
		`{"success":true,"data":{"keys":[{"number":7,"state":"opens","values":2},{"number":8,"primary":true,"state":"seals","values":3}],"next":"mer_5"}}`,
		`{"success":true,"data":{"keys":[{"number":7,"state":"opens","values":1},{"number":8,"primary":true,"state":"seals"},{"number":9,"missing":true,"state":"missing","values":1}]}}`)
	code, p := run(t, f.environment(), "", "keyset", "list")
	if want := "7    opens    3\n8    seals    3\n9    missing  1\n"; code != exitOK || !strings.HasSuffix(p.output.String(), want) {
		t.Errorf("exit code %d: %s%s", code, &p.output, &p.errors)
	}
	if f.requests[1].path != "/admin/keyset?after=mer_5" {
		t.Errorf("asked %+v", f.requests)
	}
	f = newConsole(t, http.StatusOK,
		`{"success":true,"data":{"primary":8,"resealed":2,"unopened":[{"merchant_id":"mer_4","mode":"live","provider":"bank"}],"next":"mer_5"}}`,
		`{"success":true,"data":{"primary":8,"resealed":3,"unopened":[{"merchant_id":"mer_6","mode":"test"}]}}`)
	code, p = run(t, f.environment(), "", "keyset", "reseal")
	for _, want := range []string{"sealed anew         5\n", "merchant mer_4, mode live: the connection to bank", "merchant mer_6, mode test: the callback secret"} {
		if code != exitIncomplete || !strings.Contains(p.output.String(), want) {
			t.Errorf("exit code %d: %s%s, want %q", code, &p.output, &p.errors, want)
		}
	}
	if f.requests[1].body != `{"after":"mer_5"}` {
		t.Errorf("asked %+v", f.requests)
	}
}
