package digiflazz

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk"
)

func webhook(c sdk.Connection, body string) sdk.Notification {
	mac := hmac.New(sha1.New, []byte(testSecret))
	mac.Write([]byte(body))
	header := http.Header{}
	header.Set("X-Hub-Signature", "sha1="+hex.EncodeToString(mac.Sum(nil)))
	header.Set("X-Digiflazz-Event", "update")
	header.Set("User-Agent", "Digiflazz-Hookshot")
	return sdk.Notification{Connection: c, Method: http.MethodPost, Header: header, Body: []byte(body)}
}

const ping = `{"sed":"Digiflazz","hook_id":"xhsyi","hook":{"url":"https://gateway.example/","secret":"somesecretvalue","type":"json","status":1}}`

func TestNotify(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body   string
		status int
		update sdk.Status // unknown for no status update
	}{
		"a success":           {anAnswer("Sukses", "00", bought), 200, sdk.StatusDone},
		"a price in a string": {anAnswer("Sukses", "00", `,"sn":"1","price":"10850"`), 200, sdk.StatusDone},
		"a bill":              {anAnswer("Sukses", "00", `,"sn":"1","price":10850,"selling_price":12000`), 200, sdk.StatusDone},
		"under way":           {anAnswer("Pending", "03", `,"price":10850`), 200, sdk.StatusPending},
		"a failure":           {anAnswer("Gagal", "02", `,"price":10850`), 200, sdk.StatusFailed},
		"a refund":            {anAnswer("Gagal", "74", `,"price":10850`), 200, sdk.StatusFailed},
		"a bill unknown":      {anAnswer("Gagal", "50", `,"price":10850,"admin":0`), 200, sdk.StatusFailed},
		"not about the order": {anAnswer("Gagal", "85", bought), 200, sdk.StatusUnknown},
		"about our account":   {anAnswer("Gagal", "44", bought), 200, sdk.StatusUnknown},
		"a contradiction":     {anAnswer("Gagal", "00", bought), 200, sdk.StatusUnknown},
		"a ping":              {ping, 200, sdk.StatusUnknown},
		"without a ref_id":    {strings.ReplaceAll(anAnswer("Sukses", "00", bought), reference, ""), 400, sdk.StatusUnknown},
		"without data":        {`{}`, 400, sdk.StatusUnknown},
		"null for data":       {`{"data":null}`, 400, sdk.StatusUnknown},
		"a list for data":     {`{"data":[]}`, 400, sdk.StatusUnknown},
		"a price in words":    {anAnswer("Sukses", "00", `,"sn":"1","price":"mahal"`), 400, sdk.StatusUnknown},
		"half a rupiah":       {anAnswer("Sukses", "00", `,"sn":"1","price":0.5`), 400, sdk.StatusUnknown},
		"half a body":         {`{"data":{`, 400, sdk.StatusUnknown},
		"a list":              {`[]`, 400, sdk.StatusUnknown},
		"nothing":             {``, 400, sdk.StatusUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ack := newAdapter().notify(t.Context(), webhook(connect(t, "http://127.0.0.1:1"), c.body))
			if ack.Status != c.status || len(ack.Updates) == 0 != (c.update == sdk.StatusUnknown) {
				t.Fatalf("got %+v", ack)
			}
			for _, f := range ack.Updates {
				if f.Status != c.update || f.Reference != reference || f.Amount != 10850 || f.Currency != "IDR" {
					t.Errorf("found %+v", f)
				}
			}
			if strings.Contains(ack.Detail, testSecret) {
				t.Errorf("the secret is in %q", ack.Detail)
			}
		})
	}
}

func TestAPingByItsHeader(t *testing.T) {
	t.Parallel()
	n := webhook(connect(t, "http://127.0.0.1:1"), `{"zen":1}`)
	n.Header.Set("X-Digiflazz-Event", "ping")
	if ack := newAdapter().notify(t.Context(), n); ack.Status != http.StatusOK || len(ack.Updates) != 0 {
		t.Errorf("got %+v", ack)
	}
}

func TestNotifyNeedsTheSignature(t *testing.T) {
	t.Parallel()
	c := connect(t, "http://127.0.0.1:1")
	for name, change := range map[string]func(*sdk.Notification){
		"none":       func(n *sdk.Notification) { n.Header.Del("X-Hub-Signature") },
		"of another": func(n *sdk.Notification) { n.Body = append(n.Body, ' ') },
		"not hex":    func(n *sdk.Notification) { n.Header.Set("X-Hub-Signature", "sha1=x") },
		"the secret": func(n *sdk.Notification) { n.Header.Set("X-Hub-Signature", testSecret) },
		"no body":    func(n *sdk.Notification) { n.Body = nil },
		"another secret": func(n *sdk.Notification) {
			n.Connection = connect(t, "http://127.0.0.1:1", "webhook_secret", "x")
			n.Connection.Version = 2
		},
	} {
		for _, body := range []string{anAnswer("Sukses", "00", bought), ping, "{"} {
			n := webhook(c, body)
			change(&n)
			if ack := newAdapter().notify(t.Context(), n); ack.Status != http.StatusUnauthorized || len(ack.Updates) != 0 {
				t.Errorf("%s: %+v", name, ack)
			}
		}
	}
}

// A webhook and a lookup of one result are one fact; another result is another.
func TestAFactHasOneName(t *testing.T) {
	t.Parallel()
	names := map[string]string{}
	for _, body := range []string{
		anAnswer("Sukses", "00", bought), anAnswer("Sukses", "00", strings.Replace(bought, "0041002331", "0041002332", 1)),
		anAnswer("Gagal", "02", ""), anAnswer("Gagal", "74", ""), anAnswer("Gagal", "74", bought),
	} {
		_, _, found := answersTo(t, http.StatusOK, body)
		ack := newAdapter().notify(t.Context(), webhook(connect(t, "http://127.0.0.1:1"), body))
		name := found[0].EventID
		if len(ack.Updates) != 1 || ack.Updates[0].EventID != name || !strings.HasPrefix(name, reference+"-") {
			t.Errorf("the webhook says %+v, the lookup %+v", ack, found[0])
		}
		if other, taken := names[name]; taken {
			t.Errorf("%s and %s have one name", body, other)
		}
		names[name] = body
	}
}

// Whatever is signed, nothing breaks and nothing ends an order without the
// upstream's two words for it.
func FuzzNotify(f *testing.F) {
	for _, body := range []string{
		anAnswer("Sukses", "00", bought), anAnswer("Gagal", "02", paid), anAnswer("Pending", "99", asked), ping,
		`{"data":{"ref_id":1,"price":"1e3","sn":[],"desc":{"detail":[{"periode":1}]}}}`, `{"data":"x"}`, `[`, ``,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		ack := newAdapter().notify(t.Context(), webhook(connect(t, "http://127.0.0.1:1"), body))
		if ack.Status != http.StatusOK && ack.Status != http.StatusBadRequest || len(ack.Updates) > 1 {
			t.Fatalf("got %+v", ack)
		}
		for _, update := range ack.Updates {
			word := map[sdk.Status]string{
				sdk.StatusDone: statusSuccess, sdk.StatusFailed: statusFailed, sdk.StatusPending: statusPending,
			}[update.Status]
			if word == "" || update.Reference == "" || update.Amount < 0 || !strings.Contains(update.Detail, word) {
				t.Errorf("%q: %+v", body, update)
			}
		}
	})
}
