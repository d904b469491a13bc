package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/callback"
)

const (
	testKey      = "sk_test_0123456789"
	listenSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
)

func eventBody(n int) string {
	return fmt.Sprintf(`{"event":"payments.status_update", "data":{"external_id":"inv-%d","status":"PAID"}}`, n)
}

// fakeEvents is a gateway that lists events evt-1, evt-2, ... and does at first
// what it was told to do instead.
type fakeEvents struct {
	mu      sync.Mutex
	count   int
	instead []func(http.ResponseWriter)
	asked   []string // after which event
	url     string
}

func newEvents(t *testing.T, count int, instead ...func(http.ResponseWriter)) *fakeEvents {
	t.Helper()
	f := &fakeEvents{count: count, instead: instead}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var question struct {
			After string
			Limit int
		}
		err := json.NewDecoder(r.Body).Decode(&question)
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/events" || r.Header.Get("Authorization") != "Bearer "+testKey {
			t.Errorf("%s %s by %q: %v", r.Method, r.URL, r.Header.Get("Authorization"), err)
		}
		f.answer(w, question.After, question.Limit)
	}))
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *fakeEvents) answer(w http.ResponseWriter, after string, limit int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, after)
	if len(f.instead) > 0 {
		f.instead[0](w)
		f.instead = f.instead[1:]
		return
	}
	from, _ := strconv.Atoi(strings.TrimPrefix(after, "evt-"))
	data := []callbackEvent{}
	for i := from + 1; i <= f.count && len(data) < limit; i++ {
		data = append(data, callbackEvent{ID: "evt-" + strconv.Itoa(i), Time: "2026-01-02T03:04:05Z", Body: json.RawMessage(eventBody(i))})
	}
	var text bytes.Buffer
	for i, n := range data { // by hand, because an encoder would tidy the bodies
		fmt.Fprintf(&text, "%s{\"id\":%q,\"time\":%q,\"body\":%s}", strings.Repeat(",", min(i, 1)), n.ID, n.Time, n.Body)
	}
	_, _ = fmt.Fprintf(w, `{"success":true,"data":[%s]}`, &text)
}

func says(status int, body string, header ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// receiver is a developer's server: it answers with the statuses in turn, the
// last one again and again.
type receiver struct {
	mu       sync.Mutex
	statuses []int
	headers  []http.Header
	bodies   []string
	url      string
}

func newReceiver(t *testing.T, statuses ...int) *receiver {
	t.Helper()
	f := &receiver{statuses: statuses}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.headers, f.bodies = append(f.headers, r.Header), append(f.bodies, string(body))
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(f.statuses[min(len(f.bodies), len(f.statuses))-1])
	}))
	t.Cleanup(server.Close)
	f.url = server.URL + "/hook"
	return f
}

// listening is what a listener did until it asked for the event that is not
// there yet.
type listening struct {
	typed
	pauses []time.Duration
	err    error
}

// listen runs a listener on a clock of its own until it waits for new events
// for the rounds-th time; between the rounds, meanwhile is called.
func listen(t *testing.T, c listenCommand, rounds int, meanwhile func()) *listening {
	t.Helper()
	heard := &listening{}
	heard.program = program{out: &heard.output, err: &heard.errors, getenv: func(string) string { return "" }}
	c.Key = testKey
	l, err := c.listener(&heard.program)
	if err != nil {
		t.Fatal(err)
	}
	l.pause = func(_ context.Context, d time.Duration) error {
		heard.pauses = append(heard.pauses, d)
		if rounds--; rounds == 0 {
			return context.Canceled
		}
		meanwhile()
		return nil
	}
	heard.err = l.run(t.Context(), c.From)
	return heard
}

func TestListenForwardsWhatACallbackWouldBring(t *testing.T) {
	t.Parallel()
	events, server := newEvents(t, 250), newReceiver(t, http.StatusNoContent)
	heard := listen(t, listenCommand{API: events.url, Forward: server.url, Secret: listenSecret, From: "beginning"}, 1, nil)
	if len(server.bodies) != 250 || strings.Count(heard.output.String(), "\n") != 250 {
		t.Fatalf("forwarded %d, printed %d lines: %s%v", len(server.bodies), strings.Count(heard.output.String(), "\n"), &heard.errors, heard.err)
	}
	for i, body := range server.bodies {
		header := server.headers[i]
		if body != eventBody(i+1) || header.Get("webhook-id") != "evt-"+strconv.Itoa(i+1) || header.Get("Content-Type") != "application/json" {
			t.Fatalf("event %d came as %s with %v", i+1, body, header)
		}
		if err := callback.Verify("", header, []byte(body), []callback.Secret{listenSecret}, time.Now()); err != nil {
			t.Fatal(err)
		}
		if header.Get("Authorization") != "" || header.Get("X-Svc-Event-Sequence") != "" {
			t.Fatalf("the key, or a sequence that nobody knows, came along: %v", header)
		}
	}
	if want := "2026-01-02T03:04:05Z  payments.status_update  inv-1  PAID  evt-1  ->  204\n"; !strings.HasPrefix(heard.output.String(), want) {
		t.Errorf("printed %.200s, want %s", &heard.output, want)
	}
	if strings.Contains(heard.errors.String(), "not signed") || strings.Contains(heard.errors.String()+heard.output.String(), listenSecret) {
		t.Errorf("said %s", &heard.errors)
	}
}

func TestListenBeginsWhereItIsTold(t *testing.T) {
	t.Parallel()
	for from, want := range map[string][]string{
		"now":       {eventBody(121)},
		"evt-119":   {eventBody(120), eventBody(121)},
		"beginning": nil, // all
	} {
		events, server := newEvents(t, 120), newReceiver(t, http.StatusOK)
		heard := listen(t, listenCommand{API: events.url + "/", Forward: server.url, From: from}, 2, func() {
			events.mu.Lock()
			defer events.mu.Unlock()
			events.count = 121
		})
		if want == nil && len(server.bodies) != 121 || want != nil && !slices.Equal(server.bodies, want) {
			t.Errorf("from %s: forwarded %d: %.300q", from, len(server.bodies), server.bodies)
		}
		if !strings.Contains(heard.errors.String(), "not signed") || server.headers[0].Get("X-Svc-Signature") != "" {
			t.Errorf("from %s: without a secret it said %s", from, &heard.errors)
		}
	}
}

func TestListenGoesOnAfterAFailingReceiver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		statuses []int
		posts    int
		pauses   []time.Duration
		prints   []string
	}{
		"once":      {[]int{500, 200}, 3, []time.Duration{time.Second}, []string{"->  200, 2 tries", "->  200"}},
		"redirects": {[]int{302, 302, 302, 302, 200}, 5, forwardPauses, []string{"->  302, 4 tries, given up", "->  200"}},
		"gone":      {[]int{410, 200}, 2, nil, []string{"->  410", "->  200"}},
	} {
		events, server := newEvents(t, 2), newReceiver(t, c.statuses...)
		heard := listen(t, listenCommand{API: events.url, Forward: server.url, From: "beginning"}, len(c.pauses)+1, func() {})
		lines := strings.Split(strings.TrimSpace(heard.output.String()), "\n")
		if len(lines) != 2 || !strings.HasSuffix(lines[0], c.prints[0]) || !strings.HasSuffix(lines[1], c.prints[1]) {
			t.Errorf("%s: printed %q, want %q", name, lines, c.prints)
		}
		if len(server.bodies) != c.posts || !slices.Equal(heard.pauses, append(slices.Clone(c.pauses), listenEvery)) {
			t.Errorf("%s: %d posts, pauses %v", name, len(server.bodies), heard.pauses)
		}
	}
	const nobody = "http://127.0.0.1:1" // a port that no other test is given
	heard := listen(t, listenCommand{API: newEvents(t, 1).url, Forward: nobody, From: "beginning"}, 4, func() {})
	if !strings.Contains(heard.output.String(), "->  no answer (") || !strings.Contains(heard.output.String(), "4 tries, given up") {
		t.Errorf("nobody there: printed %s", &heard.output)
	}
}

func TestListenOutlastsAGatewayInTrouble(t *testing.T) {
	t.Parallel()
	events, server := newEvents(t, 1,
		says(http.StatusTooManyRequests, `{}`, "Retry-After", "7"), says(http.StatusInternalServerError, `{}`), says(http.StatusOK, `{"success":true`, "Content-Length", "900")), newReceiver(t, http.StatusOK)
	heard := listen(t, listenCommand{API: events.url, Forward: server.url, From: "beginning"}, 4, func() {})
	if want := []time.Duration{7 * time.Second, 2 * time.Second, 4 * time.Second, listenEvery}; !slices.Equal(heard.pauses, want) {
		t.Errorf("pauses %v, want %v: %s", heard.pauses, want, &heard.errors)
	}
	if len(server.bodies) != 1 || strings.Contains(heard.errors.String(), testKey) {
		t.Errorf("forwarded %d, said %s", len(server.bodies), &heard.errors)
	}
}

func TestListenEndsWhereTheGatewaySaysNo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answer func(http.ResponseWriter)
		want   string
	}{
		{says(http.StatusUnauthorized, `{"success":false,"message":"The key is not right.\u001b[2J"}`), "401: The key is not right.·[2J"},
		{says(http.StatusNotFound, `not ours`), "404: this is no list of events"},
		{says(http.StatusOK, `{"success":true,"data":{}}`), "200: this is no list of events"},
		{says(http.StatusFound, ``, "Location", "http://127.0.0.1:1/"), "302"},
	} {
		events := newEvents(t, 0, c.answer)
		code, p := run(t, map[string]string{keyVariable: testKey}, "", "listen", "--api", events.url, "--forward", "http://127.0.0.1:1/")
		if code != exitRefused || !strings.Contains(p.errors.String(), c.want) || strings.Contains(p.errors.String(), testKey) {
			t.Errorf("exit code %d, said %s, want %s", code, &p.errors, c.want)
		}
	}
}

func TestListenRefusesWhatItShouldNotHave(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--key sk_live_abc --forward http://127.0.0.1:1":                              "live key",
		"--forward http://127.0.0.1:1":                                                "GERBANG_KEY must be given",
		"--key abc --forward http://127.0.0.1:1":                                      "test mode",
		"--key sk_test_abc":                                                           "--forward",
		"--key sk_test_abc --forward ftp://x":                                         "--forward must be",
		"--key sk_test_abc --forward http://127.0.0.1:1 --api localhost:8080":         "--api must be",
		"--key sk_test_abc --forward http://127.0.0.1:1 --secret whsec_c2hvcnQ=":      "secret is not usable",
		"--key sk_test_abc --forward http://127.0.0.1:1 --secret notasecret --from x": "secret is not usable",
	} {
		code, p := run(t, nil, "", append([]string{"listen"}, strings.Fields(args)...)...)
		said := p.errors.String()
		if code != exitUsage || !strings.Contains(said, want) || strings.Contains(said, "_abc") || strings.Contains(said, "c2hv") || strings.Contains(said, "notasecret") {
			t.Errorf("%s: exit code %d, said %s, want %s", args, code, said, want)
		}
	}
}

func TestListenEndsInOrderOnASignal(t *testing.T) {
	t.Parallel()
	events := newEvents(t, 1)
	ctx, signal := context.WithCancel(t.Context())
	defer signal()
	server := newReceiver(t, http.StatusOK)
	p := &typed{}
	lines := make(chan string, 1)
	p.program = program{out: writer(func(b []byte) { lines <- string(b); signal() }), err: &p.errors, getenv: func(string) string { return "" }}
	code := p.run(ctx, []string{"--json", "listen", "--key", testKey, "--api", events.url, "--forward", server.url, "--from", "beginning"})
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, &p.errors)
	}
	var f forwarded
	if err := json.Unmarshal([]byte(<-lines), &f); err != nil || f.ID != "evt-1" || f.Answer != 200 || f.Tries != 1 || f.Reference != "inv-1" {
		t.Errorf("printed %+v, %v", f, err)
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }
