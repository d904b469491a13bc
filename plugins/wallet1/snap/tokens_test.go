package snap

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// A token that is no longer taken is renewed once, and the same money is asked
// for under the same reference and a new external id.
func TestATokenIsRenewed(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"4013801", "4013803"} {
		up := newStub(t, map[string][]reply{topUpPath: {coded(401, code, ""), coded(200, "2003800", toppedUp)}})
		a := newAdapter(t)
		c := connect(t, up.url)
		if r := a.sendToWallet(t.Context(), walletCall(c)); r.Outcome != sdk.Done {
			t.Fatalf("%s: %+v", code, r)
		}
		sent := up.of(topUpPath)
		if len(sent) != 2 || sent[0].body != sent[1].body || sent[0].header.Get("X-EXTERNAL-ID") == sent[1].header.Get("X-EXTERNAL-ID") {
			t.Fatalf("%s: sent %+v", code, sent)
		}
		if sent[0].header.Get("Authorization") != "Bearer token-1" || sent[1].header.Get("Authorization") != "Bearer token-2" {
			t.Errorf("%s: tokens %v and %v", code, sent[0].header, sent[1].header)
		}
		a.sendToWallet(t.Context(), walletCall(c))
		if n := len(up.of(tokenPath)); n != 2 {
			t.Errorf("%s: %d tokens, and the second is still good", code, n)
		}
	}
}

// After a renewal whatever comes back counts, and nothing is sent a third time.
func TestOneRenewalIsEnough(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		second reply
		want   verdict
	}{
		"again":       {coded(401, "4013801", ""), ourFault},
		"in progress": {coded(202, "2023800", toppedUp), accepted},
		"no answer":   {reply{500, ""}, theirFault},
	} {
		up := newStub(t, map[string][]reply{topUpPath: {coded(401, "4013801", ""), c.second, coded(200, "2003800", toppedUp)}})
		checkResult(t, name, newAdapter(t).sendToWallet(t.Context(), walletCall(connect(t, up.url))), c.want, "phone")
		if n := len(up.of(topUpPath)); n != 2 {
			t.Errorf("%s: sent %d times", name, n)
		}
	}
}

func TestWithoutTokensA401IsFinal(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string][]reply{topUpPath: {coded(401, "4013801", "")}})
	c := connect(t, up.url, "signature", "asymmetric")
	checkResult(t, "asymmetric", newAdapter(t).sendToWallet(t.Context(), walletCall(c)), ourFault, "phone")
	up.only(t, topUpPath)
}

func TestATokenIsKeptUntilShortlyBeforeItsEnd(t *testing.T) {
	t.Parallel()
	for expiresIn, good := range map[string]time.Duration{
		`"900"`: 14 * time.Minute, `900`: 14 * time.Minute, `"10"`: 8 * time.Second, `"60"`: 48 * time.Second,
		`""`: 14 * time.Minute, `"soon"`: 14 * time.Minute, `"-5"`: 14 * time.Minute, `null`: 14 * time.Minute,
		`"99999999"`: 24*time.Hour - time.Minute,
	} {
		up := newStub(t, map[string][]reply{
			tokenPath:       {{200, `{"responseCode":"2007300","accessToken":"a-token","expiresIn":` + expiresIn + `}`}},
			topUpStatusPath: {coded(200, "2003900", stands("00"))},
		})
		a := newAdapter(t)
		now := today
		a.now = func() time.Time { return now }
		l := lookupOf(connect(t, up.url), walletTransfer)
		for _, after := range []time.Duration{0, good - time.Millisecond} {
			now = today.Add(after)
			if a.lookup(t.Context(), l); len(up.of(tokenPath)) != 1 {
				t.Errorf("expiresIn %s, after %v: %d tokens", expiresIn, after, len(up.of(tokenPath)))
			}
		}
		now = today.Add(good)
		if a.lookup(t.Context(), l); len(up.of(tokenPath)) != 2 {
			t.Errorf("expiresIn %s: not renewed after %v", expiresIn, good)
		}
	}
}

// Many who need a token at once wait for one. Who gives up waiting has sent
// nothing, and takes it from nobody else.
func TestTokensAreFetchedOnce(t *testing.T) {
	t.Parallel()
	var fetched atomic.Int32
	came, release := make(chan struct{}), make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == tokenPath {
			if fetched.Add(1) == 1 {
				close(came)
			}
			<-release
			_, _ = fmt.Fprint(w, `{"responseCode":"2007300","accessToken":"token-1","expiresIn":"900"}`)
			return
		}
		_, _ = fmt.Fprint(w, coded(200, "2003800", toppedUp).body)
	})
	a := newAdapter(t)
	c := connect(t, url)
	impatient, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		r := a.sendToWallet(impatient, walletCall(c))
		if r.Outcome != sdk.NotSent || r.Blame != sdk.BlameNone {
			t.Errorf("who hung up: %+v", r)
		}
		close(release)
	})
	<-came
	for range 8 {
		group.Go(func() {
			if r := a.sendToWallet(t.Context(), walletCall(c)); r.Outcome != sdk.Done {
				t.Errorf("who waited: %+v", r)
			}
		})
	}
	cancel()
	group.Wait()
	if n := fetched.Load(); n != 1 {
		t.Errorf("%d tokens were fetched", n)
	}
}
