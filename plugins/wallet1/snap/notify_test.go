package snap

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// notice is a notification with its signature by the provider's key.
func notice(t *testing.T, c sdk.Connection, body string) sdk.Notification {
	t.Helper()
	const at = "2026-11-21T00:30:05+07:00"
	signature, err := signer{key: keys().theirs}.sign(signed{
		method: "POST", path: "/v1.0/debit/emoney/transfer-bank/notify.htm", body: []byte(body), timestamp: at,
	})
	if err != nil {
		t.Fatal(err)
	}
	n := sdk.Notification{Connection: c, Method: http.MethodPost, Header: http.Header{}, Body: []byte(body)}
	n.Header.Set("X-SIGNATURE", signature)
	n.Header.Set("X-TIMESTAMP", at)
	n.Header.Set("X-PARTNER-ID", "partner-1")
	return n
}

func ends(status, more string) string {
	return `{"originalPartnerReferenceNo":"` + reference + `","originalReferenceNo":"up-1","latestTransactionStatus":"` + status +
		`","transactionStatusDesc":"x","createdTime":"2026-11-21T00:30:00+07:00","finishedTime":"2026-11-21T00:30:04+07:00","additionalInfo":{}` + more + `}`
}

const tenThousand = `,"amount":{"value":"10000.00","currency":"IDR"}`

func TestNotify(t *testing.T) {
	t.Parallel()
	confirmed := coded(200, "2000000", stands("00"))
	for name, c := range map[string]struct {
		body   string
		status reply // of the transfer, asked for
		http   int
		want   sdk.Status
		asked  int
	}{
		"done, confirmed":            {ends("00", ""), confirmed, 200, sdk.StatusDone, 1},
		"done, with its amount":      {ends("00", tenThousand), reply{}, 200, sdk.StatusDone, 0},
		"done, not yet confirmed":    {ends("00", ""), coded(200, "2000000", stands("03")), 503, 0, 1},
		"done, taken back meanwhile": {ends("00", ""), coded(200, "2000000", stands("04")), 200, sdk.StatusFailed, 1},
		"done, nobody to ask":        {ends("00", ""), reply{500, ""}, 503, 0, 1},
		"done, nothing of it":        {ends("00", ""), coded(404, "4040001", ""), 404, 0, 1},
		"done, and no amount":        {ends("00", ""), coded(200, "2000000", `"latestTransactionStatus":"00"`), 200, 0, 1},
		"failed":                     {ends("06", ""), reply{}, 200, sdk.StatusFailed, 0},
		"cancelled":                  {ends("05", ""), reply{}, 200, sdk.StatusFailed, 0},
		"taken back":                 {ends("04", tenThousand), reply{}, 200, sdk.StatusFailed, 0},
		"pending":                    {ends("03", ""), reply{}, 200, 0, 0},
		"not found":                  {ends("07", ""), reply{}, 200, 0, 0},
		"of no status":               {ends("99", ""), reply{}, 200, 0, 0},
		"of another kind":            {`{"event":"hello"}`, reply{}, 200, 0, 0},
		"of no reference":            {`{"latestTransactionStatus":"06"}`, reply{}, 200, 0, 0},
		"no object":                  {`["x"]`, reply{}, 400, 0, 0},
		"a fraction of money":        {ends("00", `,"amount":{"value":"0.50"}`), reply{}, 400, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := newStub(t, map[string][]reply{bankStatusPath: {c.status}})
			ack := newAdapter(t).notify(t.Context(), notice(t, connect(t, up.url), c.body))
			if ack.Status != c.http || len(up.of(bankStatusPath)) != c.asked {
				t.Fatalf("%+v, asked %d times", ack, len(up.of(bankStatusPath)))
			}
			var answer struct{ ResponseCode, ResponseMessage string }
			if err := json.Unmarshal(ack.Body, &answer); err != nil || len(answer.ResponseCode) != 7 || answer.ResponseMessage == "" {
				t.Errorf("answered %s", ack.Body)
			}
			if ack.Status == 200 && string(ack.Body) != `{"responseCode":"2004300","responseMessage":"Successful"}` {
				t.Errorf("answered %s", ack.Body)
			}
			if c.want == 0 {
				if len(ack.Updates) != 0 {
					t.Errorf("found %+v", ack.Updates)
				}
				return
			}
			if len(ack.Updates) != 1 {
				t.Fatalf("found %+v", ack.Updates)
			}
			f := ack.Updates[0]
			if f.Status != c.want || f.Reference != reference || f.ProviderReference != "up-1" || f.EventID == "" || f.At.IsZero() {
				t.Errorf("found %+v", f)
			}
			if f.Status == sdk.StatusDone && (f.Amount != 10000 || f.Currency != "IDR") {
				t.Errorf("found %+v", f)
			}
		})
	}
}

// A notification and a lookup name a fact alike.
func TestANotificationNamesTheFact(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string][]reply{bankStatusPath: {coded(200, "2000000", stands("04"))}})
	a := newAdapter(t)
	c := connect(t, up.url)
	told := a.notify(t.Context(), notice(t, c, ends("04", ""))).Updates[0]
	found := a.lookup(t.Context(), lookupOf(c, bankTransfer))
	if told.EventID != found.EventID || told.EventID == "" {
		t.Errorf("told %q, found %q", told.EventID, found.EventID)
	}
	if want := time.Date(2026, 11, 20, 17, 30, 4, 0, time.UTC); !told.At.Equal(want) {
		t.Errorf("at %v", told.At)
	}
}

func TestForgedNotifications(t *testing.T) {
	t.Parallel()
	up := newStub(t, nil)
	c := connect(t, up.url)
	for name, forge := range map[string]func(*sdk.Notification){
		"another body":      func(n *sdk.Notification) { n.Body = []byte(ends("00", tenThousand)) },
		"no body":           func(n *sdk.Notification) { n.Body = nil },
		"broken body":       func(n *sdk.Notification) { n.Body = []byte(`{"`) },
		"another method":    func(n *sdk.Notification) { n.Method = http.MethodPut },
		"another time":      func(n *sdk.Notification) { n.Header.Set("X-TIMESTAMP", "2026-11-21T00:30:06+07:00") },
		"another partner":   func(n *sdk.Notification) { n.Header.Set("X-PARTNER-ID", "partner-2") },
		"no partner":        func(n *sdk.Notification) { n.Header.Del("X-PARTNER-ID") },
		"no signature":      func(n *sdk.Notification) { n.Header.Del("X-SIGNATURE") },
		"no headers at all": func(n *sdk.Notification) { n.Header = http.Header{} },
		"a query":           func(n *sdk.Notification) { n.Query = "a=b" },
		"another account's": func(n *sdk.Notification) { n.Connection = connect(t, up.url, "partner_id", "partner-2") },
		"another provider's": func(n *sdk.Notification) {
			n.Connection = connect(t, up.url, "provider_public_key", publicPEM(t, &keys().ours.PublicKey))
		},
		"another path's": func(n *sdk.Notification) { n.Connection = connect(t, up.url, "notify_path", "/notify/wallet1/x") },
	} {
		n := notice(t, c, ends("06", ""))
		forge(&n)
		ack := newAdapter(t).notify(t.Context(), n)
		if ack.Status != http.StatusUnauthorized || len(ack.Updates) != 0 {
			t.Errorf("%s: %+v", name, ack)
		}
	}
	if n := up.count(); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// Without a key of its own the provider signs with the shared secret, and the
// token that it carries.
func TestSymmetricNotifications(t *testing.T) {
	t.Parallel()
	c := connect(t, newStub(t, nil).url, "provider_public_key", "", "notify_path", "/hooks/snap")
	body := ends("06", "")
	for _, asHex := range []bool{false, true} {
		n := notice(t, c, body)
		signature, err := signer{symmetric: true, secret: testSecret, hex: asHex}.sign(signed{
			"POST", "/hooks/snap?a=b", "their-token", []byte(body), n.Header.Get("X-TIMESTAMP"),
		})
		if err != nil {
			t.Fatal(err)
		}
		n.Query = "a=b"
		n.Header.Set("X-SIGNATURE", signature)
		n.Header.Set("Authorization", "Bearer their-token")
		if ack := newAdapter(t).notify(t.Context(), n); ack.Status != 200 || len(ack.Updates) != 1 {
			t.Errorf("hex %v: %+v", asHex, ack)
		}
		n.Header.Set("Authorization", "Bearer another")
		if ack := newAdapter(t).notify(t.Context(), n); ack.Status != 401 {
			t.Errorf("hex %v, another token: %+v", asHex, ack)
		}
	}
}
