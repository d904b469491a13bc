package dev

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/callback"
)

const (
	liveSecret  callback.Secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	testSecret  callback.Secret = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
	otherSecret callback.Secret = "whsec_b3RoZXItb3RoZXItb3RoZXItb3RoZXItb3RoZXItb3RoZXI="
)

const paidBody = `{"event":"payments.status_update","data":{"external_id":"inv-1","status":"PAID","amount":25000}}`

// newTestInbox is a door whose inbox knows one merchant.
func newTestInbox(t *testing.T) (*inbox, string) {
	t.Helper()
	d := &door{url: "http://door", inbox: newInbox(), mails: newMails()}
	d.inbox.know([]merchant{{MerchantID: "mer_1", CallbackSecret: string(liveSecret), TestCallbackSecret: string(testSecret)}})
	server := httptest.NewServer(d.routes())
	t.Cleanup(server.Close)
	return d.inbox, server.URL
}

func signed(t *testing.T, id, body string, secret callback.Secret, at time.Time) http.Header {
	t.Helper()
	message := callback.Message{ID: id, Sequence: 1, Body: []byte(body)}
	header, err := callback.Sign("", message, callback.Secrets{Current: secret}, at)
	if err != nil {
		t.Fatal(err)
	}
	return header
}

func post(t *testing.T, url string, header http.Header, body string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body) // the status is what counts
	return response.StatusCode
}

func kept(t *testing.T, url string) []arrival {
	t.Helper()
	_, text := ask(t.Context(), t, url+"/inbox.json", "")
	var list []arrival
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return list
}

func TestInboxVerifiesWhatComes(t *testing.T) {
	t.Parallel()
	_, url := newTestInbox(t)
	now := time.Now()
	for _, c := range []struct {
		name   string
		header http.Header
		status int
		mode   string // whose secret verifies it
		reason string
	}{
		{"live", signed(t, "evt_1", paidBody, liveSecret, now), 200, "live", ""},
		{"test", signed(t, "evt_2", paidBody, testSecret, now), 200, "test", ""},
		{"rotated", signed(t, "evt_3", paidBody, otherSecret, now), 401, "", "the demo's first secrets: X-Svc-Signature"},
		{"old", signed(t, "evt_4", paidBody, liveSecret, now.Add(-time.Hour)), 401, "", "webhook-timestamp"},
		{"bare", http.Header{}, 401, "", "no X-Svc-Signature"},
		{"mixed", mixed(signed(t, "evt_5", paidBody, liveSecret, now), signed(t, "evt_5", paidBody, testSecret, now)), 401, "", "by another secret"},
	} {
		if status := post(t, url+"/inbox/"+c.name, c.header, paidBody); status != c.status {
			t.Errorf("%s: answered %d, want %d", c.name, status, c.status)
		}
		got := kept(t, url)[0]
		if got.Name != c.name || got.Verified != (c.status == 200) || !strings.Contains(got.Reason, c.reason) {
			t.Errorf("%s: kept %+v, want %q", c.name, got, c.reason)
		}
		if c.mode != "" && (got.By == nil || got.By.MerchantID != "mer_1" || got.By.Mode != c.mode) {
			t.Errorf("%s: signed for %+v, want mode %s", c.name, got.By, c.mode)
		}
		if got.Event != "payments.status_update" || got.Reference != "inv-1" || got.Status != "PAID" || got.Body != paidBody {
			t.Errorf("%s: read as %+v", c.name, got)
		}
	}
}

// mixed takes the service's own signature from the second.
func mixed(a, b http.Header) http.Header {
	a.Set("X-Svc-Signature", b.Get("X-Svc-Signature"))
	return a
}

func TestInboxKnowsARepetition(t *testing.T) {
	t.Parallel()
	_, url := newTestInbox(t)
	for _, id := range []string{"evt_1", "evt_2", "evt_1", "evt_1"} {
		post(t, url+"/inbox", signed(t, id, paidBody, liveSecret, time.Now()), paidBody)
	}
	post(t, url+"/inbox", http.Header{}, paidBody)
	post(t, url+"/inbox", http.Header{}, paidBody) // without an id there is nothing to repeat
	var tries []int
	for _, a := range kept(t, url) {
		tries = append(tries, a.Try)
	}
	if want := []int{1, 1, 3, 2, 1, 1}; !slices.Equal(tries, want) {
		t.Errorf("tries %v, want %v, the newest first", tries, want)
	}
	if _, page := ask(t.Context(), t, url+"/inbox", ""); !strings.Contains(page, "try 3") {
		t.Errorf("the page shows no repetition:\n%s", page)
	}
}

func TestInboxIsBounded(t *testing.T) {
	t.Parallel()
	box, url := newTestInbox(t)
	for i := range inboxKeeps + 5 {
		box.keep("", http.Header{}, []byte(strconv.Itoa(i)))
	}
	list := kept(t, url)
	if len(list) != inboxKeeps || list[0].Body != "204" || list[0].Number != 205 || list[inboxKeeps-1].Body != "5" {
		t.Errorf("kept %d, from %+v", len(list), list[0])
	}
	if status := post(t, url+"/inbox", http.Header{}, strings.Repeat("x", inboxMaxBody+1)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body that is too large: %d", status)
	}
	if status := post(t, url+"/inbox/"+strings.Repeat("n", inboxMaxName+1), http.Header{}, "x"); status != http.StatusBadRequest {
		t.Errorf("a name that is too long: %d", status)
	}
	if status := post(t, url+"/inbox", http.Header{}, strings.Repeat("x", inboxMaxBody)); status != http.StatusUnauthorized {
		t.Errorf("a body of 64 KiB: %d", status)
	}
}

func TestInboxPageIsSafeToLookAt(t *testing.T) {
	t.Parallel()
	_, url := newTestInbox(t)
	if _, page := ask(t.Context(), t, url+"/inbox", ""); !strings.Contains(page, "Nothing has come yet") {
		t.Errorf("the empty page:\n%s", page)
	}
	const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>`
	quoted, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"User-Agent": {hostile}, "Webhook-Id": {hostile}}
	body := `{"event":` + string(quoted) + `,"data":{"external_id":` + string(quoted) + `,"status":` + string(quoted) + `}}`
	response := httptest.NewRecorder()
	box := &door{url: "http://door", inbox: newInbox(), mails: newMails()}
	box.inbox.keep("<script>", header, []byte(body))
	box.inbox.keep("", http.Header{}, []byte(hostile+"\xff\x00"))
	box.routes().ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/inbox", http.NoBody))
	page := response.Body.String()
	if strings.Contains(page, "<script>") || strings.Contains(page, "<img") || !strings.Contains(page, "&lt;img") {
		t.Errorf("markup of a stranger is on the page:\n%s", page)
	}
	policy := response.Header().Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "script-src 'self'") || strings.Contains(policy, "unsafe") {
		t.Errorf("Content-Security-Policy %q", policy)
	}
}

func TestDoorsAssetsAndPages(t *testing.T) {
	t.Parallel()
	url := newTestDoor(t, "http://gateway.invalid", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/_sandbox/movements" {
			_, _ = io.WriteString(w, `[]`)
			return
		}
		_, _ = io.WriteString(w, `{}`)
	})
	for path, says := range map[string]string{"/": `href="/inbox"`, "/inbox": "http://door/inbox", "/inbox.json": "[]", "/inbox.js": "DOMParser", "/door.css": "article"} {
		if status, body := ask(t.Context(), t, url+path, ""); status != http.StatusOK || !strings.Contains(body, says) {
			t.Errorf("%s: %d without %q:\n%s", path, status, says, body)
		}
	}
}
