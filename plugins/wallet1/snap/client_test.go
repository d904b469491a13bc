package snap

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
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

// withToken serves tokens, and everything else by the handler.
func withToken(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == tokenPath {
			_, _ = fmt.Fprint(w, `{"responseCode":"2007300","accessToken":"token-1","expiresIn":"900"}`)
			return
		}
		handler(w, r)
	})
}

// What is signed is what is sent: method, path, token, hash of the body and
// time, in every way to sign.
func TestRequestsAreSigned(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings []any
		fits     func(request seen) bool
	}{
		"base64": {nil, func(r seen) bool {
			mac := signer{secret: testSecret}.mac(textOf(r, "token-1:"))
			return r.header.Get("X-SIGNATURE") == base64.StdEncoding.EncodeToString(mac)
		}},
		"hex": {[]any{"signature_encoding", "hex"}, func(r seen) bool {
			mac := signer{secret: testSecret}.mac(textOf(r, "token-1:"))
			return r.header.Get("X-SIGNATURE") == hex.EncodeToString(mac)
		}},
		"asymmetric": {[]any{"signature", "asymmetric", "client_secret", ""}, func(r seen) bool {
			return verifies(&keys().ours.PublicKey, textOf(r, ""), r.header.Get("X-SIGNATURE"))
		}},
	} {
		up := newStub(t, map[string][]reply{topUpPath: {coded(200, "2003800", toppedUp)}})
		if r := newAdapter(t).sendToWallet(t.Context(), walletCall(connect(t, up.url, c.settings...))); r.Outcome != sdk.Done {
			t.Fatalf("%s: %+v", name, r)
		}
		request := up.only(t, topUpPath)
		if !c.fits(request) {
			t.Errorf("%s: signature %s", name, request.header.Get("X-SIGNATURE"))
		}
		tokens := up.of(tokenPath)
		if name == "asymmetric" {
			if len(tokens) != 0 || request.header.Get("Authorization") != "" {
				t.Errorf("a token where none is needed: %d, %v", len(tokens), request.header)
			}
			continue
		}
		if request.header.Get("Authorization") != "Bearer token-1" || len(tokens) != 1 {
			t.Errorf("%s: %v", name, request.header)
		}
		asked := tokens[0]
		if !verifies(&keys().ours.PublicKey, "client-1|2026-11-21T00:30:00+07:00", asked.header.Get("X-SIGNATURE")) ||
			asked.header.Get("X-CLIENT-KEY") != "client-1" || asked.body != `{"grantType":"client_credentials"}` {
			t.Errorf("%s: token asked by %+v", name, asked)
		}
	}
}

func textOf(r seen, token string) string {
	return "POST:" + r.path + ":" + token + hash([]byte(r.body)) + ":" + r.header.Get("X-TIMESTAMP")
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string][]reply{topUpPath: {coded(200, "2003800", toppedUp)}})
	newAdapter(t).sendToWallet(t.Context(), walletCall(connect(t, up.url, "origin", "shop.example")))
	h := up.only(t, topUpPath).header
	for name, want := range map[string]string{
		"X-TIMESTAMP": "2026-11-21T00:30:00+07:00", "X-PARTNER-ID": "partner-1", "CHANNEL-ID": "95221",
		"Content-Type": "application/json", "ORIGIN": "shop.example",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	up = newStub(t, map[string][]reply{topUpPath: {coded(200, "2003800", toppedUp)}})
	newAdapter(t).sendToWallet(t.Context(), walletCall(connect(t, up.url, "partner_id", "")))
	if h := up.only(t, topUpPath).header; h.Get("X-PARTNER-ID") != "client-1" || h.Values("ORIGIN") != nil {
		t.Errorf("got %v", h)
	}
}

func TestExternalIDs(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for range 2000 {
		id := newExternalID(today)
		if len(id) > 36 || strings.Trim(id, "0123456789") != "" || known[id] {
			t.Fatalf("%s is no new id", id)
		}
		known[id] = true
	}
}

// An external id that was used before is replaced in a question. A transfer is
// not repeated: whoever used our id may have moved the money.
func TestConflicts(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string][]reply{
		topUpPath:         {coded(409, "4093800", "")},
		topUpStatusPath:   {coded(409, "4093900", ""), coded(200, "2003900", stands("00"))},
		walletInquiryPath: {coded(409, "4093700", "")},
	})
	a := newAdapter(t)
	c := connect(t, up.url)
	checkResult(t, "transfer", a.sendToWallet(t.Context(), walletCall(c)), nobodyKnows, "phone")
	up.only(t, topUpPath)
	if f := a.lookup(t.Context(), lookupOf(c, walletTransfer)); f.Status != sdk.StatusDone {
		t.Errorf("lookup: %+v", f)
	}
	checkQuoted(t, "quote", a.quoteWallet(t.Context(), quoteOf(c, walletTransfer, walletOrder)), nobodyKnows, "phone")
	if n := len(up.of(walletInquiryPath)); n != 2 {
		t.Errorf("inquired %d times", n)
	}
}

// A kept connection that the server closes just as it is used again is where
// net/http replays requests. No transfer may be among them.
func TestNoTransferIsSentTwice(t *testing.T) {
	t.Parallel()
	var posts atomic.Int32
	url := withToken(t, func(w http.ResponseWriter, _ *http.Request) {
		answer := coded(200, "2003800", toppedUp).body
		posts.Add(1)
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		_, _ = fmt.Fprint(w, answer)
		// The whole answer is out, and the connection goes while the client keeps it.
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("flush: %v", err)
		}
		hangUp(t, w)
	})
	a := newAdapter(t)
	const calls = 50
	for range calls {
		a.sendToWallet(t.Context(), walletCall(connect(t, url)))
	}
	if got := posts.Load(); got > calls {
		t.Errorf("%d calls sent %d requests", calls, got)
	}
}

func TestACutConnectionProvesNothing(t *testing.T) {
	t.Parallel()
	url := withToken(t, func(w http.ResponseWriter, _ *http.Request) { hangUp(t, w) })
	a := newAdapter(t)
	checkResult(t, "wallet", a.sendToWallet(t.Context(), walletCall(connect(t, url))), theirFault, "phone")
	checkResult(t, "bank", a.sendToBank(t.Context(), bankCall(connect(t, url))), theirFault, "account_no")
}

func TestAnAnswerCutShortProvesNothing(t *testing.T) {
	t.Parallel()
	url := withToken(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "5000")
		_, _ = fmt.Fprint(w, coded(403, "4033814", "").body)
	})
	checkResult(t, "cut", newAdapter(t).sendToWallet(t.Context(), walletCall(connect(t, url))), theirFault, "phone")
}

func TestAnAnswerTooLongProvesNothing(t *testing.T) {
	t.Parallel()
	url := withToken(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, coded(200, "2003800", `"x":"`+strings.Repeat("x", maxAnswer)+`",`+toppedUp).body)
	})
	checkResult(t, "long", newAdapter(t).sendToWallet(t.Context(), walletCall(connect(t, url))), theirFault, "phone")
}

func TestNothingIsSentAfterSendBy(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string][]reply{topUpPath: {coded(200, "2003800", toppedUp)}})
	a := newAdapter(t)
	call := walletCall(connect(t, up.url))
	call.SendBy = today.Add(-time.Millisecond)
	checkResult(t, "late", a.sendToWallet(t.Context(), call), verdict{outcome: sdk.NotSent}, "phone")
	call = bankCall(connect(t, up.url))
	call.SendBy = today.Add(-time.Millisecond)
	checkResult(t, "late", a.sendToBank(t.Context(), call), verdict{outcome: sdk.NotSent}, "phone")
	if sent := append(up.of(topUpPath), up.of(bankTransferPath)...); len(sent) != 0 {
		t.Errorf("sent %v", sent)
	}
}

// The renewal of a token takes its time: what comes too late then is not sent
// again, and the first attempt moved nothing.
func TestNothingIsRepeatedAfterSendBy(t *testing.T) {
	t.Parallel()
	var posts atomic.Int32
	url := withToken(t, func(w http.ResponseWriter, _ *http.Request) {
		posts.Add(1)
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprint(w, coded(401, "4013801", "").body)
	})
	a := newAdapter(t)
	a.now = func() time.Time { return today.Add(time.Duration(posts.Load()) * time.Hour) }
	checkResult(t, "late", a.sendToWallet(t.Context(), walletCall(connect(t, url))), verdict{outcome: sdk.NotSent}, "phone")
	if n := posts.Load(); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

// nobodyListens is an address that stays dead: the port is below those that the system gives to listeners and connections,
// while one that was closed may be another test's at once.
const nobodyListens = "http://127.0.0.1:1"

func TestWhatNeverGotAConnectionWasNotSent(t *testing.T) {
	t.Parallel()
	tlsToPlain := strings.Replace(newStub(t, nil).url, "http://", "https://", 1)
	for name, url := range map[string]string{"nobody there": nobodyListens, "no handshake": tlsToPlain} {
		for _, way := range []string{"symmetric", "asymmetric"} {
			c := connect(t, url, "signature", way)
			a := newAdapter(t)
			checkResult(t, name, a.sendToWallet(t.Context(), walletCall(c)), verdict{outcome: sdk.NotSent, blame: sdk.BlameUpstream}, "phone")
			if f := a.lookup(t.Context(), lookupOf(c, walletTransfer)); f.Status != sdk.StatusUnknown || f.Blame != sdk.BlameUpstream {
				t.Errorf("%s: lookup: %+v", name, f)
			}
		}
	}
}

// silent takes a request and never answers, until the test ends.
func silent(t *testing.T) (url string, arrived <-chan struct{}) {
	t.Helper()
	got, ended := make(chan struct{}, 8), make(chan struct{})
	url = withToken(t, func(http.ResponseWriter, *http.Request) {
		got <- struct{}{}
		<-ended
	})
	t.Cleanup(func() { close(ended) }) // before the server is closed, which waits
	return url, got
}

func TestTheDeadlineEndsACallAsUnknown(t *testing.T) {
	t.Parallel()
	url, _ := silent(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	checkResult(t, "silence", newAdapter(t).sendToWallet(ctx, walletCall(connect(t, url))), theirFault, "phone")
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
	checkResult(t, "hung up", newAdapter(t).sendToWallet(ctx, walletCall(connect(t, url))), nobodyKnows, "phone")
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := newStub(t, map[string][]reply{topUpPath: {coded(200, "2003800", toppedUp)}})
	url := withToken(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.url+r.URL.Path, http.StatusFound)
	})
	checkResult(t, "redirect", newAdapter(t).sendToWallet(t.Context(), walletCall(connect(t, url))), theirFault, "phone")
	if n := elsewhere.count(); n != 0 {
		t.Errorf("the token went elsewhere, %d times", n)
	}
}

// An upstream that quotes all that is secret in everything it says.
func TestSecretsAreInNoText(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 202, 400, 401, 403, 404, 429, 500} {
		var mu sync.Mutex
		secrets := []string{testSecret, "a-very-secret-token"}
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			signature := r.Header.Get("X-SIGNATURE")
			mu.Lock()
			secrets = append(secrets, signature)
			mu.Unlock()
			if r.URL.Path == tokenPath && status != 429 {
				_, _ = fmt.Fprint(w, `{"responseCode":"2007300","accessToken":"a-very-secret-token","expiresIn":"900"}`)
				return
			}
			all := r.Header.Get("Authorization") + " " + signature + " " + testSecret
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `{"responseCode":"%d3899","responseMessage":"%s","accessToken":"a-very-secret-token","amount":{"value":"%s"},"detailData":"%s"}`, status, all, all, all)
		})
		c := connect(t, url)
		a := newAdapter(t)
		text := fmt.Sprintf("%+v", a.sendToWallet(t.Context(), walletCall(c))) +
			fmt.Sprintf("%+v", a.sendToBank(t.Context(), bankCall(c))) +
			fmt.Sprintf("%+v", a.quoteWallet(t.Context(), quoteOf(c, walletTransfer, walletOrder))) +
			fmt.Sprintf("%+v", a.quoteBank(t.Context(), quoteOf(c, bankTransfer, bankOrder))) +
			fmt.Sprintf("%+v", a.lookup(t.Context(), lookupOf(c, walletTransfer))) +
			fmt.Sprintf("%+v", a.transactions(t.Context(), queryCall(c, "/wallet1/transactions", `{}`))) +
			fmt.Sprintf("%+v", verify(t.Context(), c))
		for _, secret := range append(secrets, "PRIVATE KEY") {
			if secret != "" && strings.Contains(text, secret) {
				t.Errorf("status %d: %.20s is in %s", status, secret, text)
			}
		}
		if !strings.Contains(text, "[secret]") {
			t.Errorf("status %d: the upstream's words are lost: %s", status, text)
		}
	}
}
