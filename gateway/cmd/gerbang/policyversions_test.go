package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

// TestActivationThatIsUnknown: a gateway or database that is gone after the order was
// given leaves its end open, and the command says where to look.
func TestActivationThatIsUnknown(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string][]string{
		"lost with the order":          {""},
		"the database is gone":         {`500 {"success":false,"error_code":"INTERNAL","message":"Something went wrong on our side."}`},
		"the gateway is gone after it": {`200 {"success":true,"data":{"activation_id":"a","version":"v","state":"withdrawn","detail":"nobody decided"}}`},
		"refused":                      {`409 {"success":false,"error_code":"IN_PROGRESS","message":"Another version is being activated."}`},
	} {
		var asked atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			answer := answers[min(int(asked.Add(1)), len(answers))-1]
			status, body, _ := strings.Cut(answer, " ")
			switch status {
			case "":
				panic(http.ErrAbortHandler) // the connection is cut
			case "409":
				w.WriteHeader(http.StatusConflict)
			case "500":
				w.WriteHeader(http.StatusInternalServerError)
			}
			_, _ = w.Write([]byte(body))
		}))
		p := &program{out: &strings.Builder{}, err: &strings.Builder{}, getenv: func(name string) string {
			return map[string]string{adminURLVariable: server.URL, adminTokenVariable: "token"}[name]
		}}
		code := p.run(t.Context(), []string{"policy", "activate", "51f0c3"})
		server.Close()
		said := p.err.(*strings.Builder).String()
		unknown := strings.Contains(said, "unknown") && strings.Contains(said, "gerbang policy list") && strings.Contains(said, "gerbang replica list")
		lost := code == exitUnreachable && name == "lost with the order"
		if code != exitRefused && !lost || unknown != (name == "lost with the order" || name == "the database is gone") {
			t.Errorf("%s: code %d, %s", name, code, said)
		}
	}
}

// TestAPushReplacesWhatItBeganWith: without .rego files a push takes the rules that are in force, so what somebody else
// activates in between is not replaced.
func TestAPushReplacesWhatItBeganWith(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "data.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		flags    []string
		replaces string
	}{
		"what was in force":    {nil, "aaaa"},
		"what is named":        {[]string{"--replaces", "cccc"}, "cccc"},
		"nothing, only a push": {[]string{}, ""},
	} {
		inForce, replaced := "aaaa", ""
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodGet:
				_, _ = fmt.Fprintf(w, `{"success":true,"data":[{"version":"dddd","state":"pushed"},{"version":%q,"state":"active"}]}`, inForce)
			case strings.HasSuffix(r.URL.Path, "/activate"):
				var wanted adminapi.Wish
				if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil {
					t.Error(err)
				}
				replaced = wanted.Replaces
				_, _ = fmt.Fprint(w, `{"success":true,"data":{"activation_id":"a","version":"eeee","state":"done","in_force":true}}`)
			default: // the push, while another operator activates
				inForce = "bbbb"
				_, _ = fmt.Fprint(w, `{"success":true,"data":{"version":"eeee","state":"pushed","findings":[]}}`)
			}
		}))
		p := &program{out: &strings.Builder{}, err: &strings.Builder{}, getenv: func(name string) string {
			return map[string]string{adminURLVariable: server.URL, adminTokenVariable: "token"}[name]
		}}
		args := append([]string{"policy", "push", dir, "-m", "a try"}, c.flags...)
		if c.replaces != "" {
			args = append(args, "--activate")
		}
		code := p.run(t.Context(), args)
		server.Close()
		if code != exitOK || replaced != c.replaces {
			t.Errorf("%s: code %d, it replaces %q, want %q: %s", name, code, replaced, c.replaces, p.err)
		}
	}
}

// TestHowAWaitEnds is the table of what a command makes of an activation.
func TestHowAWaitEnds(t *testing.T) {
	t.Parallel()
	behind := []string{"node-1/ab"}
	for name, c := range map[string]struct {
		a    adminapi.PolicyActivation
		wait bool
		took time.Duration
		want string // part of the error, "-" for none yet
		code int
	}{
		"proposed":                 {adminapi.PolicyActivation{State: "proposed"}, false, time.Second, "-", 0},
		"proposed for long":        {adminapi.PolicyActivation{State: "proposed"}, false, 21 * time.Second, "have not decided", exitRefused},
		"proposed, waited for":     {adminapi.PolicyActivation{State: "proposed", Behind: behind}, true, 61 * time.Second, "node-1/ab", exitIncomplete},
		"done":                     {adminapi.PolicyActivation{State: "done", InForce: true, Behind: behind}, false, 0, errInForce.Error(), 0},
		"done, waited for":         {adminapi.PolicyActivation{State: "done", InForce: true, Behind: behind}, true, time.Second, "-", 0},
		"done everywhere":          {adminapi.PolicyActivation{State: "done", InForce: true}, true, time.Second, errInForce.Error(), 0},
		"one stays behind":         {adminapi.PolicyActivation{State: "done", InForce: true, Behind: behind}, true, 61 * time.Second, "node-1/ab", exitIncomplete},
		"over by now":              {adminapi.PolicyActivation{State: "done"}, true, time.Second, "another version is by now", exitIncomplete},
		"refused":                  {adminapi.PolicyActivation{State: "refused", Detail: "b: too new"}, true, time.Second, "b: too new", exitRefused},
		"a second operator":        {adminapi.PolicyActivation{State: "waiting"}, false, 0, errInForce.Error(), 0},
		"a second one, waited for": {adminapi.PolicyActivation{State: "waiting"}, true, 0, "another operator", exitIncomplete},
	} {
		err := ended(c.a, c.wait, c.took)
		switch {
		case c.want == "-":
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		case err == nil || !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v, want %q", name, err, c.want)
			continue
		}
		if p := (&program{err: &strings.Builder{}}); c.code != 0 && p.fail(err) != c.code {
			t.Errorf("%s: not the exit code %d", name, c.code)
		}
	}
}
