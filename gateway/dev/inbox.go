package dev

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/callback"
)

const (
	inboxKeeps   = 200
	inboxMaxBody = 64 << 10
	inboxMaxName = 64
)

// inbox plays a merchant's server: it receives callbacks, verifies them with the demo
// merchants' secrets, and keeps the last of them in memory.
type inbox struct {
	now func() time.Time

	mu       sync.Mutex
	holders  []holder
	arrivals []arrival // the oldest first
	count    int
}

// holder is a demo merchant in a mode, and the secret that signs its callbacks.
type holder struct {
	MerchantID string `json:"merchant_id"`
	Mode       string `json:"mode"`
	secret     callback.Secret
}

// arrival is one attempt of a callback, as the inbox shows it to programs.
type arrival struct {
	Number     int               `json:"number"` // from 1, in the order in which they came
	ReceivedAt time.Time         `json:"received_at"`
	Name       string            `json:"name,omitempty"` // what came after /inbox/
	WebhookID  string            `json:"webhook_id"`
	Try        int               `json:"try"` // which one of those that are kept and have its webhook-id
	Verified   bool              `json:"verified"`
	By         *holder           `json:"by,omitempty"`     // whose secret verified it
	Reason     string            `json:"reason,omitempty"` // why it is not verified
	Event      string            `json:"event"`
	Reference  string            `json:"reference"`
	Status     string            `json:"status"`
	Headers    map[string]string `json:"headers"`
	Body       string            `json:"body"` // as it came: the signatures are over these bytes
}

func newInbox() *inbox { return &inbox{now: time.Now} }

// know replaces the demo merchants whose callbacks can be verified.
func (b *inbox) know(merchants []merchant) {
	var holders []holder
	for _, m := range merchants {
		holders = append(holders,
			holder{m.MerchantID, "live", callback.Secret(m.CallbackSecret)},
			holder{m.MerchantID, "test", callback.Secret(m.TestCallbackSecret)})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holders = holders
}

// receive answers as a merchant's server should: 2xx for a verified callback, and
// 401 for anything else.
func (b *inbox) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, inboxMaxBody))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			say(w, http.StatusRequestEntityTooLarge, "the inbox takes 64 KiB")
		}
		return
	}
	if len(r.PathValue("name")) > inboxMaxName {
		say(w, http.StatusBadRequest, "the inbox's name is longer than 64 bytes")
		return
	}
	a := b.keep(r.PathValue("name"), r.Header, body)
	if !a.Verified {
		say(w, http.StatusUnauthorized, a.Reason)
		return
	}
	answer(w, http.StatusOK, map[string]bool{"received": true})
}

// keep verifies a callback and keeps it in place of the oldest.
func (b *inbox) keep(name string, header http.Header, body []byte) arrival {
	a := arrival{Name: name, WebhookID: header.Get("webhook-id"), Headers: interesting(header), Body: string(body), ReceivedAt: b.now().UTC()}
	a.read(body)
	b.mu.Lock()
	defer b.mu.Unlock()
	a.By, a.Reason = b.verify(header, body, a.ReceivedAt)
	a.Verified = a.By != nil
	b.count++
	a.Number, a.Try = b.count, 1
	for _, before := range b.arrivals {
		if a.WebhookID != "" && before.WebhookID == a.WebhookID {
			a.Try = before.Try + 1
		}
	}
	b.arrivals = append(b.arrivals, a)
	b.arrivals = slices.Delete(b.arrivals, 0, max(0, len(b.arrivals)-inboxKeeps))
	return a
}

// verify finds the holder whose secret signed a callback, or why there is none.
func (b *inbox) verify(header http.Header, body []byte, now time.Time) (*holder, string) {
	var all []callback.Secret
	for i, h := range b.holders {
		if callback.Verify("", header, body, []callback.Secret{h.secret}, now) == nil {
			return &b.holders[i], ""
		}
		all = append(all, h.secret)
	}
	reason := "each signature is by another secret"
	if err := callback.Verify("", header, body, all, now); err != nil {
		reason = strings.TrimPrefix(err.Error(), callback.ErrUnverified.Error()+": ")
	}
	return nil, "not verifiable with the demo's first secrets: " + reason
}

// list returns the kept callbacks, newest first.
func (b *inbox) list() []arrival {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]arrival, 0, len(b.arrivals))
	for _, a := range slices.Backward(b.arrivals) {
		list = append(list, a)
	}
	return list
}

func (b *inbox) asJSON(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff") // it repeats what strangers sent
	answer(w, http.StatusOK, b.list())
}

// read reads the body, if it is one of our events.
func (a *arrival) read(body []byte) {
	var event struct {
		Event string `json:"event"`
		Data  struct {
			ExternalID string `json:"external_id"`
			RefID      string `json:"ref_id"`
			Status     string `json:"status"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &event) == nil {
		a.Event, a.Status, a.Reference = event.Event, event.Data.Status, cmp.Or(event.Data.ExternalID, event.Data.RefID)
	}
}

// At is the time of arrival, for people.
func (a arrival) At() string { return a.ReceivedAt.Format("2 Jan 15:04:05") }

// Pretty is the body with a line for each member, if it is JSON.
func (a arrival) Pretty() string {
	var text bytes.Buffer
	if json.Indent(&text, []byte(a.Body), "", "  ") != nil {
		return strings.ToValidUTF8(a.Body, "\uFFFD")
	}
	return text.String()
}

var shownHeaders = []string{
	"Content-Type", "User-Agent", "X-Svc-Event-Sequence", "X-Svc-Signature", "webhook-id", "webhook-timestamp", "webhook-signature",
}

func interesting(header http.Header) map[string]string {
	shown := map[string]string{}
	for _, name := range shownHeaders {
		if value := header.Get(name); value != "" {
			shown[name] = value
		}
	}
	return shown
}
