package upstream_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

func TestBaseURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://api.example.com/v1":         "https://api.example.com/v1",
		"HTTPS://API.Example.com:443/v1/":    "https://api.example.com/v1",
		"https://api.example.com:444/v1":     "https://api.example.com:444/v1",
		"https://api.example.com:80/v1":      "https://api.example.com:80/v1",
		"https://api.example.com/V1":         "https://api.example.com/V1",
		"https://proxy.example/x/":           "https://proxy.example/x",
		"http://[::1]:80":                    "http://[::1]",
		"http://[::1]:41233":                 "http://[::1]:41233",
		"http://127.0.0.1:443/":              "http://127.0.0.1:443",
		"http://localhost:41233":             "http://localhost:41233",
		"":                                   "https://usual.example",
		"http://api.example.com":             "must be https",
		"http://127.0.0.1.example":           "must be https",
		"http://192.168.1.1":                 "must be https",
		"ftp://127.0.0.1":                    "must be https",
		"https://user:hush-hush@example.com": "scheme, host and path alone",
		"https://a:hush-hush@example.com/%z": "not a URL",
		"https://example.com/?a=b":           "scheme, host and path alone",
		"https://example.com/#a":             "scheme, host and path alone",
		"https://":                           "not a URL",
		"127.0.0.1:80":                       "not a URL",
	} {
		got, err := upstream.BaseURL(text, "https://usual.example")
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want) || strings.Contains(got, "hush")) {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if _, err := upstream.BaseURL("", ""); err == nil {
		t.Error("no address is an address")
	}
}

// ask posts to a server, with a client of its own.
func ask(ctx context.Context, t *testing.T, url string, most int64) (upstream.Answer, *upstream.Unanswered) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return upstream.Ask(upstream.NewClient(), request, most)
}

func TestAskTellsWhetherTheRequestLeft(t *testing.T) {
	t.Parallel()
	const nobody = "http://127.0.0.1:1" // a port that no other test is given
	if _, cut := ask(t.Context(), t, nobody, 10); cut == nil || cut.Sent || cut.Blame != sdk.BlameUpstream {
		t.Errorf("nobody there: %+v", cut)
	}
	ctx, hangUp := context.WithCancel(t.Context())
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		hangUp()
		<-r.Context().Done()
	}))
	t.Cleanup(hung.Close)
	if _, cut := ask(ctx, t, hung.URL, 10); cut == nil || !cut.Sent || cut.Blame != sdk.BlameNone {
		t.Errorf("our side hung up: %+v", cut)
	}
	long := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "0123456789") }))
	t.Cleanup(long.Close)
	if answer, cut := ask(t.Context(), t, long.URL, 10); cut != nil || string(answer.Body) != "0123456789" {
		t.Errorf("a whole answer: %+v, %+v", answer, cut)
	}
	if answer, cut := ask(t.Context(), t, long.URL, 9); cut == nil || !cut.Sent || answer.Body != nil {
		t.Errorf("an answer that is too long: %+v, %+v", answer, cut)
	}
}

// A connection that was used before and is cut by the upstream must not have a POST
// sent again: the upstream may have acted on the first.
func TestNothingIsSentTwice(t *testing.T) {
	t.Parallel()
	posts := make(chan int, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		posts <- 1
		if len(posts) == 1 {
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}))
	t.Cleanup(server.Close)
	client := upstream.NewClient()
	for want := range 2 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if _, cut := upstream.Ask(client, request, 10); (cut != nil) != (want == 1) || cut != nil && !cut.Sent {
			t.Errorf("request %d: %+v", want, cut)
		}
	}
	if len(posts) != 2 {
		t.Errorf("%d requests came, want 2", len(posts))
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.RedirectHandler("http://192.0.2.1/elsewhere", http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	if answer, cut := ask(t.Context(), t, server.URL, 1000); cut != nil || answer.Status != http.StatusTemporaryRedirect {
		t.Errorf("got %+v, %+v", answer, cut)
	}
}

func TestForeignTextIsShortAndPrintable(t *testing.T) {
	t.Parallel()
	if got := upstream.Printable("a\nb\x1b[31mc\u202ed key", "key", ""); got != "a b [31mc d [secret]" {
		t.Errorf("got %q", got)
	}
	if got := len([]rune(upstream.Printable(strings.Repeat("é", 800)))); got != 401 {
		t.Errorf("got %d characters", got)
	}
}

func TestLenientValues(t *testing.T) {
	t.Parallel()
	var got struct {
		Number, Word, Nothing, List upstream.Text
		At, Unreadable, Missing     upstream.Time
	}
	err := json.Unmarshal([]byte(`{"Number":-12.50,"Word":"x","Nothing":null,"List":[1],"At":"2026-11-22T10:00:00+07:00","Unreadable":"22/11/2026"}`), &got)
	if err != nil || got.Number != "-12.50" || got.Word != "x" || got.Nothing != "" || got.List != "" {
		t.Errorf("got %+v, %v", got, err)
	}
	if !got.At.Equal(time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)) || !got.Unreadable.IsZero() || !got.Missing.IsZero() {
		t.Errorf("got %+v", got)
	}
}
