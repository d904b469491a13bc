package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/store/migrated"
)

// heard is a log whose messages arrive in a channel.
type heard struct {
	slog.Handler

	messages chan string
}

func (h heard) Enabled(context.Context, slog.Level) bool { return true }
func (h heard) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h heard) WithGroup(string) slog.Handler            { return h }

func (h heard) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "the merchants' console has ended") {
		h.messages <- r.Message
	}
	return nil
}

// visit is the status of an answer, 0 where there is none.
func visit(t *testing.T, method, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer sk_live_"+strings.Repeat("a", 32))
	request.AddCookie(&http.Cookie{Name: "gerbang_merchants", Value: strings.Repeat("a", 43)})
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// TestTheAPIOutlivesTheMerchantsConsole: a page that panics, sessions that can't be read
// and a listener that ends stop nobody's payments. The operators' listener is needed: a
// gateway without it ends.
func TestTheAPIOutlivesTheMerchantsConsole(t *testing.T) {
	t.Parallel()
	url := migrated.New(t)
	config, log := Defaults(), heard{slog.DiscardHandler, make(chan string, 1)}
	config.Listen, config.Console, config.MerchantsConsole = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	config.DatabaseURL, config.KeysetFile = url, keysetFile(t)
	a, err := New(t.Context(), config, slog.New(log))
	if err != nil {
		t.Fatal(err)
	}
	pages := a.people
	a.people = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/panics" {
			panic("a page's fault")
		}
		pages.ServeHTTP(w, r)
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	console := a.MerchantsConsoleURL()
	want := func(when string, page, status int) {
		t.Helper()
		if got := visit(t, http.MethodPost, a.APIURL()+"/balance"); got != http.StatusUnauthorized {
			t.Errorf("%s: the API answers %d", when, got)
		}
		if got := visit(t, http.MethodGet, console+"/signin"); got != page {
			t.Errorf("%s: the console answers %d, want %d", when, got, page)
		}
		if got := visit(t, http.MethodGet, a.ConsoleURL()+"/healthz"); got != status {
			t.Errorf("%s: the operators' listener answers %d, want %d", when, got, status)
		}
	}
	want("at first", http.StatusOK, http.StatusOK)
	if got := visit(t, http.MethodGet, console+"/panics"); got != 0 {
		t.Errorf("a page that panics answers %d", got)
	}
	want("after a panic", http.StatusOK, http.StatusOK)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), "ALTER TABLE sessions RENAME TO away"); err != nil {
		t.Fatal(err)
	}
	want("without sessions", http.StatusServiceUnavailable, http.StatusOK)
	_ = a.members.Close()
	select {
	case <-log.messages:
	case err := <-ended:
		t.Fatalf("the gateway ended with the merchants' console: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("nobody says that the merchants' console has ended")
	}
	http.DefaultClient.CloseIdleConnections()
	want("without the merchants' console", 0, http.StatusOK)
	_ = a.operators.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("without the operators' listener: %v", err)
	}
}
