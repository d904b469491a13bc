package snap

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// What is signed is the whole path, also where the API is not at the root.
func TestAPathBelowTheBase(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string][]reply{
		"/snap" + tokenPath: {{200, `{"responseCode":"2007300","accessToken":"token-1"}`}},
		"/snap" + topUpPath: {coded(200, "2003800", toppedUp)},
	})
	if r := newAdapter(t).sendToWallet(t.Context(), walletCall(connect(t, up.url+"/snap/"))); r.Outcome != sdk.Done {
		t.Fatalf("%+v", r)
	}
	request := up.only(t, "/snap"+topUpPath)
	want, err := signer{symmetric: true, secret: testSecret}.sign(signed{
		"POST", "/snap" + topUpPath, "token-1", []byte(request.body), request.header.Get("X-TIMESTAMP"),
	})
	if got := request.header.Get("X-SIGNATURE"); err != nil || got != want {
		t.Errorf("got %s, want %s, %v", got, want, err)
	}
}

// A connection that can't be used is our own account's fault; its content is
// in no text.
func TestUnusableConnections(t *testing.T) {
	t.Parallel()
	broken := func(settings ...any) sdk.Connection { return connect(t, "http://127.0.0.1:1", settings...) }
	for name, c := range map[string]sdk.Connection{
		"no JSON":                {Credentials: json.RawMessage(`hush-hush`)},
		"of another shape":       {Credentials: json.RawMessage(`{"client_secret":["hush-hush"]}`)},
		"no client":              broken("client_id", ""),
		"no channel":             broken("channel_id", ""),
		"no payer":               broken("customer_number", ""),
		"no encryption":          broken("base_url", "http://hush-hush.example"),
		"no secret":              broken("client_secret", ""),
		"no private key":         broken("private_key", ""),
		"half a private key":     broken("private_key", "-----BEGIN PRIVATE KEY-----\nhush-hush\n-----END PRIVATE KEY-----"),
		"no public key":          broken("signature", "asymmetric", "provider_public_key", ""),
		"half a public key":      broken("provider_public_key", "hush-hush"),
		"the keys the wrong way": broken("private_key", publicPEM(t, &keys().ours.PublicKey)),
	} {
		a := newAdapter(t)
		for what, r := range map[string]sdk.Result{
			"wallet": a.sendToWallet(t.Context(), walletCall(c)), "bank": a.sendToBank(t.Context(), bankCall(c)),
			"wallet inquiry": a.walletInquiry(t.Context(), queryCall(c, "", walletOrder)),
			"bank inquiry":   a.bankInquiry(t.Context(), queryCall(c, "", bankOrder)),
			"history":        a.transactions(t.Context(), queryCall(c, "", `{}`)),
		} {
			checkResult(t, name+": "+what, r, ourFault, "")
			if strings.Contains(r.Detail, "hush") {
				t.Errorf("%s: a credential is in %s", name, r.Detail)
			}
		}
		checkQuoted(t, name, a.quoteWallet(t.Context(), quoteOf(c, walletTransfer, walletOrder)), ourFault, "")
		checkQuoted(t, name, a.quoteBank(t.Context(), quoteOf(c, bankTransfer, bankOrder)), ourFault, "")
		found := a.lookup(t.Context(), lookupOf(c, walletTransfer))
		ack := a.notify(t.Context(), sdk.Notification{Connection: c})
		if found.Status != sdk.StatusUnknown || found.Blame != sdk.BlameAccount || ack.Status != 503 || len(ack.Updates) != 0 {
			t.Errorf("%s: %+v, %+v", name, found, ack)
		}
		if r := verify(t.Context(), c); r.Outcome != sdk.Refused || strings.Contains(r.Refusal.Message, "hush") {
			t.Errorf("%s: verified with %+v", name, r)
		}
	}
}

// Two merchants, two modes, and changed credentials, all at once on one
// adapter: each call goes out under its own.
func TestCredentialsNeverMix(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string][]reply{topUpPath: {reply{500, ""}}})
	a := newAdapter(t)
	var group sync.WaitGroup
	for _, merchant := range []string{"m1", "m2"} {
		for _, mode := range []string{"live", "test"} {
			for version := range int64(3) {
				name := fmt.Sprintf("%s-%s-%d", merchant, mode, version)
				c := connect(t, up.url, "client_id", name, "partner_id", name, "customer_number", "628"+name)
				c.MerchantID, c.Mode, c.Version = merchant, mode, version
				call := walletCall(c)
				call.Reference = name
				for range 3 {
					group.Go(func() { a.sendToWallet(t.Context(), call) })
				}
			}
		}
	}
	group.Wait()
	sent := up.of(topUpPath)
	for _, request := range sent {
		if name := request.member(t, "partnerReferenceNo"); request.header.Get("X-PARTNER-ID") != name {
			t.Errorf("%s was sent by %s", name, request.header.Get("X-PARTNER-ID"))
		}
	}
	if len(sent) != 2*2*3*3 {
		t.Errorf("%d requests", len(sent))
	}
	asked := map[string]string{}
	for _, request := range up.of(tokenPath) {
		client := request.header.Get("X-CLIENT-KEY")
		if !verifies(&keys().ours.PublicKey, client+"|2026-11-21T00:30:00+07:00", request.header.Get("X-SIGNATURE")) {
			t.Errorf("the token of %s is asked for under another name", client)
		}
		asked[client] = client
	}
	if len(asked) != 2*2*3 {
		t.Errorf("tokens were asked for by %v", asked)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		token, balance reply
		want           verdict
		account        string
	}{
		"good":                    {reply{}, coded(200, "2001100", `"name":"TOKO CONTOH"`), done, "TOKO CONTOH"},
		"may not see the balance": {reply{}, coded(403, "4031101", ""), done, ""},
		"has no balance call":     {reply{}, coded(405, "4051100", ""), done, ""},
		"no token":                {coded(401, "4017300", ""), coded(200, "2001100", ""), ourFault, ""},
		"wrong signature":         {reply{}, coded(401, "4011100", ""), ourFault, ""},
		"wrong number":            {reply{}, coded(404, "4041111", ""), declined, ""},
		"down":                    {reply{}, reply{503, ""}, theirFault, ""},
	} {
		replies := map[string][]reply{balancePath: {c.balance}}
		if c.token.status != 0 {
			replies[tokenPath] = []reply{c.token}
		}
		up := newStub(t, replies)
		r := verify(t.Context(), connect(t, up.url))
		checkResult(t, name, r, c.want, "")
		if r.ProviderReference != c.account {
			t.Errorf("%s: account %q", name, r.ProviderReference)
		}
		for _, request := range up.of(balancePath) {
			if request.member(t, "accountNo") != payer {
				t.Errorf("%s: asked %s", name, request.body)
			}
		}
	}
}
