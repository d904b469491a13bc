package digiflazz

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// hangUp cuts the connection without an answer.
func hangUp(t *testing.T, w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Errorf("hijack: %v", err)
		return
	}
	_ = conn.Close()
}

// A kept connection that the server closes just as it is used again is where
// net/http replays requests. None that buys something may be among them.
func TestNoOrderIsSentTwice(t *testing.T) {
	t.Parallel()
	for _, quote := range []string{pulsaQuote, plnQuote} {
		var posts atomic.Int32
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if posts.Add(1) == 1 {
				_, _ = fmt.Fprint(w, anAnswer("Sukses", "00", paid))
				return
			}
			hangUp(t, w)
		})
		a, call := newAdapter(), callOf(connect(t, url), quote, 10850)
		if result := a.order(t.Context(), call); result.Outcome != sdk.Done {
			t.Fatalf("the first call: %+v", result)
		}
		if result := a.order(t.Context(), call); result.Outcome != sdk.Unknown || result.Blame != sdk.BlameUpstream {
			t.Errorf("got %+v, want unknown", result)
		}
		if got := posts.Load(); got != 2 {
			t.Errorf("two calls sent %d requests", got)
		}
	}
}

func TestNoOrderIsReplayedOnClosedIdleConnections(t *testing.T) {
	t.Parallel()
	var posts atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		posts.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		answer := anAnswer("Sukses", "00", bought)
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		_, _ = fmt.Fprint(w, answer)
		// The whole answer is out, and the connection goes while the client keeps it.
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("flush: %v", err)
		}
		hangUp(t, w)
	})
	a := newAdapter()
	const calls = 50
	for range calls {
		a.order(t.Context(), callOf(connect(t, url), pulsaQuote, 10850))
	}
	if got := posts.Load(); got > calls {
		t.Errorf("%d calls sent %d requests", calls, got)
	}
}

// Only the upstream's own error says that the call is over: no proxy's word does, nor
// that its ref_id is taken, which is no refusal either.
func TestOnlyItsOwnErrorEndsACall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		canned canned
		ends   bool
	}{
		"server error":           {canned{500, `{"message":"Server Error"}`}, true},
		"bad gateway":            {canned{502, `{"message":"Server Error"}`}, false},
		"timed out":              {canned{504, `{"message":"Server Error"}`}, false},
		"JSON of somebody":       {canned{500, `{"message":"Internal server error"}`}, false},
		"a proxy's 500":          {canned{500, "<html>"}, false},
		"a ref_id that is taken": {canned{400, anAnswer("Gagal", codeTaken, "")}, false},
	} {
		up := newStub(t, map[string]canned{"/transaction ": c.canned, "/transaction pay-pasca": c.canned})
		for _, quote := range []string{pulsaQuote, plnQuote} {
			if r := newAdapter().order(t.Context(), callOf(connect(t, up.url), quote, 10850)); r.Outcome != sdk.Unknown || r.Errored != c.ends {
				t.Errorf("%s: got %+v, want that it ends the call %v", name, r, c.ends)
			}
		}
	}
}

// nobodyListens is an address that stays dead: the port is below those that the system gives to listeners and connections,
// while one that was closed may be another test's at once.
const nobodyListens = "http://127.0.0.1:1"

func TestWhatNeverGotAConnectionWasNotSent(t *testing.T) {
	t.Parallel()
	tlsToPlain := strings.Replace(newStub(t, nil).url, "http://", "https://", 1)
	for name, url := range map[string]string{"nobody there": nobodyListens, "no handshake": tlsToPlain} {
		c := connect(t, url)
		for _, quote := range []string{pulsaQuote, plnQuote} {
			if result := newAdapter().order(t.Context(), callOf(c, quote, 10850)); result.Outcome != sdk.NotSent || result.Blame != sdk.BlameUpstream {
				t.Errorf("%s: order: %+v", name, result)
			}
			if found := newAdapter().lookup(t.Context(), lookupOf(c, quote, 10850)); found.Status != sdk.StatusUnknown || found.Blame != sdk.BlameUpstream {
				t.Errorf("%s: lookup: %+v", name, found)
			}
		}
		if q := newAdapter().quote(t.Context(), quoteOf(c, plnItem, `{"sku":"pln","target":"530000000001"}`)); q.Outcome != sdk.NotSent || q.Blame != sdk.BlameUpstream {
			t.Errorf("%s: quote: %+v", name, q)
		}
		if result := newAdapter().products(t.Context(), sdk.Call{Connection: c}); result.Outcome != sdk.NotSent || result.Blame != sdk.BlameUpstream {
			t.Errorf("%s: products: %+v", name, result)
		}
	}
}

// A server that takes the request and never answers, until the test ends.
func silent(t *testing.T) (url string, arrived <-chan struct{}) {
	t.Helper()
	got, done := make(chan struct{}, 8), make(chan struct{})
	url = serve(t, func(http.ResponseWriter, *http.Request) {
		got <- struct{}{}
		<-done
	})
	t.Cleanup(func() { close(done) }) // before the server is closed, which waits
	return url, got
}

func TestTheDeadlineEndsACallAsUnknown(t *testing.T) {
	t.Parallel()
	url, _ := silent(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	result := newAdapter().order(ctx, callOf(connect(t, url), pulsaQuote, 10850))
	if result.Outcome != sdk.Unknown || result.Blame != sdk.BlameUpstream {
		t.Errorf("got %+v", result)
	}
}

func TestOurOwnHangUpIsNobodysFault(t *testing.T) {
	t.Parallel()
	url, arrived := silent(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-arrived
		cancel()
	}()
	result := newAdapter().order(ctx, callOf(connect(t, url), pulsaQuote, 10850))
	if result.Outcome != sdk.Unknown || result.Blame != sdk.BlameNone {
		t.Errorf("got %+v", result)
	}
}

func TestAnAnswerCutShortIsUnknown(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "5000")
		_, _ = fmt.Fprint(w, anAnswer("Sukses", "00", bought))
	})
	if result := newAdapter().order(t.Context(), callOf(connect(t, url), pulsaQuote, 10850)); result.Outcome != sdk.Unknown {
		t.Errorf("got %+v", result)
	}
}

func TestAnAnswerTooLongIsUnknown(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, anAnswer("Sukses", "00", `,"tele":"`+strings.Repeat("x", maxAnswer)+`"`))
	})
	result := newAdapter().order(t.Context(), callOf(connect(t, url), pulsaQuote, 10850))
	if result.Outcome != sdk.Unknown || !strings.Contains(result.Detail, "too long") {
		t.Errorf("got %+v", result)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := newStub(t, map[string]canned{"/transaction ": {200, anAnswer("Sukses", "00", bought)}})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.url+r.URL.Path, http.StatusTemporaryRedirect)
	})
	if result := newAdapter().order(t.Context(), callOf(connect(t, url), pulsaQuote, 10850)); result.Outcome != sdk.Unknown {
		t.Errorf("got %+v", result)
	}
	if asked := elsewhere.asked(); len(asked) != 0 {
		t.Errorf("the request went elsewhere: %v", asked)
	}
}

// An upstream that quotes all secrets in everything it says.
func TestNoSecretIsInAText(t *testing.T) {
	t.Parallel()
	for rc, status := range map[string]string{
		"00": "Sukses", "02": "Gagal", "03": "Pending", "41": "Gagal", "85": "Gagal", "90": "Gagal", "x": "?",
	} {
		sign := signOf(reference)
		quoted := testKey + " " + testSecret + " " + sign
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{"data":{"ref_id":%q,"status":%q,"rc":%q,"message":"salah %s","sn":"sn %s"}}`, reference, status, rc, quoted, quoted)
		})
		c, a := connect(t, url), newAdapter()
		result, found := a.order(t.Context(), callOf(c, pulsaQuote, 10850)), a.lookup(t.Context(), lookupOf(c, pulsaQuote, 10850))
		text := fmt.Sprintf("%+v %+v %+v %s %s", result, found, a.quote(t.Context(), quoteOf(c, plnItem, `{"sku":"pln","target":"530000000001"}`)), result.Data, found.Data)
		for _, secret := range []string{testKey, testSecret, sign} {
			if strings.Contains(text, secret) {
				t.Errorf("rc %s: %q is in %s", rc, secret, text)
			}
		}
		if !strings.Contains(text, "[secret] [secret] [secret]") {
			t.Errorf("rc %s: the upstream's words are lost: %s", rc, text)
		}
	}
}
