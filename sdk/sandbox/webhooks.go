package sandbox

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // what upstreams sign with is theirs to choose
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

const (
	// webhookTries is how often a webhook is sent before it is given up.
	webhookTries = 10
	// webhookPause is the pause after the first failure; it doubles. Real
	// upstreams wait for minutes and hours, a sandbox must be watchable.
	webhookPause = time.Second
	// webhookGrace is what a webhook on its way still gets after a stop.
	webhookGrace = time.Second
	// webhookSenders is how many webhooks are on their way at once.
	webhookSenders = 16
)

// Webhook is one message to an account. Two with equal headers are a
// duplicate, and At puts them in any order.
type Webhook struct {
	// Account is whose address and token are used, as they are when it is sent.
	Account AccountID `json:"account"`
	// URL replaces the account's address when it is not empty.
	URL string `json:"url,omitempty"`
	// TokenHeader carries the account's token, when it is not empty.
	TokenHeader string `json:"token_header,omitempty"`
	// SignatureHeader carries "sha1=" and the body's HMAC-SHA1 under the
	// account's token, when neither is empty.
	SignatureHeader string `json:"signature_header,omitempty"`
	// Header is sent with every try.
	Header map[string]string `json:"header,omitempty"`
	// Body is sent byte for byte.
	Body json.RawMessage `json:"body,omitempty"`
	// Garbage is sent in place of a body: what is no JSON at all.
	Garbage string `json:"garbage,omitempty"`
	// Subject is what it is about, by which [Activity.About] finds its tries;
	// without one they are not kept.
	Subject string `json:"subject,omitempty"`
	// Says is what it says in a word, for people: PAID.
	Says string `json:"says,omitempty"`
	// At is when the first try is due.
	At time.Time `json:"at"`
}

// Webhooks delivers webhooks until they are accepted with a 2xx or given up.
// What is not delivered yet survives a restart.
type Webhooks struct {
	// Sign returns headers that a try of a webhook carries: an upstream signs
	// over the time at which it sends. The webhook's own headers win. It is set
	// before Begin; nil adds none.
	Sign func(hook Webhook, body []byte) map[string]string

	accounts *Accounts
	activity *Activity
	client   *http.Client
	clock    Clock
	journal  *Journal
	log      *slog.Logger
	agenda   *Agenda[string]
	topic    *Topic[webhookEvent]
	slots    chan struct{}
	senders  sync.WaitGroup

	mu      sync.Mutex
	waiting map[string]*delivery
	changed chan struct{} // closed and replaced whenever a try has ended
}

// webhookEvent is one of: queued (Hook), failed (Tries, Next), ended (Done).
type webhookEvent struct {
	Key   string    `json:"key"`
	Hook  *Webhook  `json:"hook,omitempty"`
	Tries int       `json:"tries,omitempty"`
	Next  time.Time `json:"next,omitzero"`
	Done  bool      `json:"done,omitempty"`
}

type delivery struct {
	hook   Webhook
	tries  int
	next   time.Time
	flying bool
}

func newWebhooks(accounts *Accounts, j *Journal, activity *Activity, c Config) *Webhooks {
	w := &Webhooks{
		accounts: accounts, activity: activity, client: c.Client, clock: c.Clock, journal: j, log: c.Log,
		slots:   make(chan struct{}, webhookSenders),
		waiting: map[string]*delivery{}, changed: make(chan struct{}),
	}
	w.agenda = NewAgenda(c.Clock, func(ctx context.Context, key string) {
		w.senders.Go(func() { w.send(ctx, key) })
	})
	w.topic = NewTopic(j, "webhook", w.apply)
	return w
}

// Entry queues a webhook, when it is appended to the journal together with the
// change that it reports.
func (w *Webhooks) Entry(hook Webhook) Entry {
	return w.topic.Entry(webhookEvent{Key: rand.Text(), Hook: &hook})
}

func (w *Webhooks) apply(e webhookEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.waiting[e.Key]
	if e.Hook == nil {
		close(w.changed)
		w.changed = make(chan struct{})
	}
	switch {
	case e.Hook != nil:
		d = &delivery{hook: *e.Hook, next: e.Hook.At}
		w.waiting[e.Key] = d
	case e.Done || d == nil:
		delete(w.waiting, e.Key)
		return
	default:
		d.tries, d.next, d.flying = e.Tries, e.Next, false
	}
	w.agenda.Add(d.next, e.Key)
}

// run sends what is due until the context ends, and waits for the senders.
func (w *Webhooks) run(ctx context.Context) {
	w.agenda.Run(ctx)
	w.senders.Wait()
}

// send makes one try and records how it ended.
func (w *Webhooks) send(ctx context.Context, key string) {
	w.slots <- struct{}{}
	defer func() { <-w.slots }()
	hook, tries, ok := w.take(key)
	if !ok {
		return
	}
	// Nobody must hear of a change that a crash could still undo.
	err := w.journal.Sync()
	if err == nil {
		sending, cancel := graceful(ctx)
		var status int
		began := w.clock.Now()
		status, err = w.post(sending, hook)
		w.activity.notified(hook, began, tries+1, status, err)
		cancel()
	}
	if err != nil && ctx.Err() != nil {
		return // the next start tries again
	}
	event := webhookEvent{Key: key, Done: true}
	switch tries++; {
	case err == nil:
	case tries >= webhookTries:
		w.log.Warn("webhook given up", "account", hook.Account, "tries", tries, "err", err)
	default:
		pause := webhookPause << (tries - 1)
		w.log.Info("webhook not accepted", "account", hook.Account, "tries", tries, "again_in", pause, "err", err)
		event = webhookEvent{Key: key, Tries: tries, Next: w.clock.Now().Add(pause)}
	}
	w.journal.Append(w.topic.Entry(event))
}

// Tried waits until every webhook that is due now has been tried once, or the
// context ends: who pays by hand expects that the receiver has heard of it.
func (w *Webhooks) Tried(ctx context.Context) {
	due := map[string]int{}
	w.mu.Lock()
	now := w.clock.Now()
	for key, d := range w.waiting {
		if !d.next.After(now) {
			due[key] = d.tries
		}
	}
	w.mu.Unlock()
	for {
		w.mu.Lock()
		for key, tries := range due {
			if d := w.waiting[key]; d == nil || d.tries > tries {
				delete(due, key)
			}
		}
		changed := w.changed
		w.mu.Unlock()
		if len(due) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// graceful outlives a context by a moment, so that a webhook that is being
// answered while the simulator stops is not sent again by the next start.
func graceful(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(webhookGrace, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

// take marks a webhook as in flight. It returns false for one that is not due or already in flight.
func (w *Webhooks) take(key string) (Webhook, int, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.waiting[key]
	if d == nil || d.flying || w.clock.Now().Before(d.next) {
		return Webhook{}, 0, false
	}
	d.flying = true
	return d.hook, d.tries, true
}

// post makes a try and returns the status that was answered, 0 for none.
func (w *Webhooks) post(ctx context.Context, hook Webhook) (int, error) {
	account, _ := w.accounts.Get(hook.Account)
	url := account.CallbackURL
	if hook.URL != "" {
		url = hook.URL
	}
	if url == "" {
		return 0, errors.New("the account has no callback URL")
	}
	body := []byte(hook.Body)
	if hook.Garbage != "" {
		body = []byte(hook.Garbage)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	if w.Sign != nil {
		for name, value := range w.Sign(hook, body) {
			request.Header.Set(name, value)
		}
	}
	for name, value := range hook.Header {
		request.Header.Set(name, value)
	}
	if hook.TokenHeader != "" {
		request.Header.Set(hook.TokenHeader, account.CallbackToken)
	}
	if hook.SignatureHeader != "" && account.CallbackToken != "" {
		mac := hmac.New(sha1.New, []byte(account.CallbackToken))
		mac.Write(body)
		request.Header.Set(hook.SignatureHeader, "sha1="+hex.EncodeToString(mac.Sum(nil)))
	}
	response, err := w.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	// Reading a little lets the connection be used again.
	_, _ = io.CopyN(io.Discard, response.Body, 4<<10)
	if response.StatusCode/100 != 2 {
		return response.StatusCode, fmt.Errorf("answered %d", response.StatusCode)
	}
	return response.StatusCode, nil
}
