package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/seed-f006e74d/gerbang/gateway/callback"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
)

const (
	keyVariable            = "GERBANG_KEY"
	callbackSecretVariable = "GERBANG_CALLBACK_SECRET"

	testKeyPrefix = "sk_test_"
	liveKeyPrefix = "sk_live_"

	listenPage    = 100 // the most that one answer lists
	listenEvery   = time.Second
	listenMaxWait = 15 * time.Second
	listenMaxBody = 16 << 20
)

// forwardPauses are between the tries of one event; after the last it goes on.
var forwardPauses = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second}

// listenCommand takes a key and a secret as flags, because they are of test mode
// and on their owner's machine; the environment keeps them out of the list of
// processes.
type listenCommand struct {
	Key     string `placeholder:"sk_test_..." help:"A merchant's key of test mode; also GERBANG_KEY."`
	Forward string `required:"" placeholder:"URL" help:"Where each event is posted."`
	API     string `name:"api" default:"http://127.0.0.1:8080" placeholder:"URL" help:"The gateway, as merchants call it (${default})."`
	Secret  string `placeholder:"whsec_..." help:"Signs the forwarded events as callbacks are signed; also GERBANG_CALLBACK_SECRET."`
	From    string `default:"now" placeholder:"ID" help:"Start at: now, beginning, or after the event of an id (${default})."`
}

// Run forwards events until a signal comes.
func (c *listenCommand) Run(ctx context.Context, p *program) error {
	l, err := c.listener(p)
	if err != nil {
		return usage(err)
	}
	return stopped(ctx, l.run(ctx, c.From))
}

// listener reads a merchant's events and forwards them.
type listener struct {
	program      *program
	key          string
	api, forward *url.URL
	secret       callback.Secret // empty: what is forwarded is not signed
	after        string          // the last event that is done with
	client       http.Client
	now          func() time.Time
	pause        func(context.Context, time.Duration) error
}

func (c *listenCommand) listener(p *program) (*listener, error) {
	l := &listener{
		program: p, key: cmp.Or(c.Key, p.getenv(keyVariable)),
		secret: callback.Secret(cmp.Or(c.Secret, p.getenv(callbackSecretVariable))),
		now:    time.Now, pause: pause,
		client: http.Client{
			Timeout: 10 * time.Second,
			// The key must not travel to where an answer points, and a callback doesn't follow.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	switch {
	case l.key == "":
		return nil, errors.New("--key or " + keyVariable + " must be given")
	case strings.HasPrefix(l.key, liveKeyPrefix):
		return nil, errors.New("this is a live key; listen is for development and takes " + testKeyPrefix + "... alone")
	case !strings.HasPrefix(l.key, testKeyPrefix):
		return nil, errors.New("the key must begin with " + testKeyPrefix + ": listen takes keys of test mode")
	}
	var err error
	if l.api, err = address("--api", c.API); err != nil {
		return nil, err
	}
	if l.forward, err = address("--forward", c.Forward); err != nil {
		return nil, err
	}
	_, err = l.headers(callbackEvent{ID: "x", Body: json.RawMessage("{}")})
	return l, err
}

func address(flag, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New(flag + " must be an http or https URL")
	}
	return u, nil
}

// run begins where it was told to, and goes on until the context ends or the
// gateway says no.
func (l *listener) run(ctx context.Context, from string) error {
	switch from {
	case "beginning":
	case "now":
		if err := l.skip(ctx); err != nil {
			return err
		}
	default:
		l.after = from
	}
	l.say("forwarding events of %s to %s; Ctrl-C ends it", l.api.Redacted(), l.forward.Redacted())
	if l.secret == "" {
		l.say("the requests are not signed: --secret or %s signs them as callbacks are", callbackSecretVariable)
	}
	for {
		list, err := l.read(ctx)
		if err != nil {
			return err
		}
		for _, n := range list {
			if err := l.handle(ctx, n); err != nil {
				return err
			}
		}
		if len(list) > 0 {
			continue
		}
		if err := l.pause(ctx, listenEvery); err != nil {
			return err
		}
	}
}

// skip passes over what is listed already.
func (l *listener) skip(ctx context.Context) error {
	for {
		list, err := l.read(ctx)
		if err != nil || len(list) == 0 {
			return err
		}
		l.after = list[len(list)-1].ID
	}
}

// callbackEvent is one event as the gateway lists it.
type callbackEvent struct {
	ID   string          `json:"id"`
	Time string          `json:"time"`
	Body json.RawMessage `json:"body"`
}

// read lists the events after the last one, and outlasts a gateway that is not
// there or has no time.
func (l *listener) read(ctx context.Context) ([]callbackEvent, error) {
	wait := listenEvery
	for {
		list, later, err := l.ask(ctx)
		if err == nil || later < 0 || ctx.Err() != nil {
			return list, cmp.Or(ctx.Err(), err)
		}
		l.say("%s; asking again", printable(err.Error()))
		if err := l.pause(ctx, max(wait, later)); err != nil {
			return nil, err
		}
		wait = min(2*wait, listenMaxWait)
	}
}

// ask asks once. With an error comes how long to wait at least, or less than
// nothing where asking again would not help.
func (l *listener) ask(ctx context.Context) ([]callbackEvent, time.Duration, error) {
	question, err := json.Marshal(struct {
		After string `json:"after,omitempty"`
		Limit int    `json:"limit"`
	}{l.after, listenPage})
	if err != nil {
		return nil, -1, err
	}
	header := http.Header{"Authorization": {"Bearer " + l.key}}
	response, err := l.post(ctx, l.api.JoinPath(catalog.EventsPath), header, question)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close() // read to its end below
	content, err := io.ReadAll(io.LimitReader(response.Body, listenMaxBody))
	if err != nil {
		return nil, 0, fmt.Errorf("the gateway's answer broke off: %w", err)
	}
	if response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= http.StatusInternalServerError {
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // without it, as soon as always
		return nil, time.Duration(max(seconds, 0)) * time.Second, fmt.Errorf("the gateway answered %d", response.StatusCode)
	}
	var answer struct {
		Success bool            `json:"success"`
		Message string          `json:"message"`
		Data    []callbackEvent `json:"data"`
	}
	switch err := json.Unmarshal(content, &answer); {
	case err != nil:
		return nil, -1, fmt.Errorf("the gateway answered %d: this is no list of events: %w", response.StatusCode, err)
	case !answer.Success:
		return nil, -1, fmt.Errorf("the gateway answered %d: %s", response.StatusCode, printable(cmp.Or(answer.Message, "this is no list of events")))
	}
	return answer.Data, 0, nil
}

func (l *listener) post(ctx context.Context, to *url.URL, header http.Header, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = header
	header.Set("Content-Type", "application/json")
	header.Set("User-Agent", "Gerbang/1")
	return l.client.Do(request)
}

// forwarded is what became of an event, as a line of JSON.
type forwarded struct {
	ID        string `json:"id"`
	Time      string `json:"time"`
	Event     string `json:"event"`
	Reference string `json:"reference"`
	Status    string `json:"status"`
	Answer    int    `json:"answer,omitempty"` // the receiver's last
	Error     string `json:"error,omitempty"`  // why there is none
	Tries     int    `json:"tries"`
}

func (f forwarded) done() bool { return f.Answer/100 == 2 || f.Answer == http.StatusGone }

// handle forwards an event until it is taken or was tried often enough, and
// prints its line.
func (l *listener) handle(ctx context.Context, n callbackEvent) error {
	f := summary(n)
	for {
		f.Tries++
		f.Answer, f.Error = l.try(ctx, n)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if f.done() || f.Tries > len(forwardPauses) {
			break
		}
		if err := l.pause(ctx, forwardPauses[f.Tries-1]); err != nil {
			return err
		}
	}
	l.after = n.ID
	return l.program.line(f)
}

// try posts an event once, with the headers that its callback has but for its
// place in the movement's history, which the list doesn't tell.
func (l *listener) try(ctx context.Context, n callbackEvent) (int, string) {
	header, err := l.headers(n)
	if err != nil {
		return 0, err.Error()
	}
	response, err := l.post(ctx, l.forward, header, n.Body)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err // the URL was said at the start
		}
		return 0, err.Error()
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10) // the status is what counts
	return response.StatusCode, ""
}

func (l *listener) headers(n callbackEvent) (http.Header, error) {
	if l.secret == "" {
		return http.Header{"Webhook-Id": {n.ID}}, nil
	}
	message := callback.Message{ID: n.ID, Sequence: 1, Body: n.Body}
	header, err := callback.Sign("", message, callback.Secrets{Current: l.secret}, l.now())
	if err != nil {
		return nil, err
	}
	header.Del("X-Svc-Event-Sequence")
	return header, nil
}

func summary(n callbackEvent) forwarded {
	var body struct {
		Event string `json:"event"`
		Data  struct {
			ExternalID string `json:"external_id"`
			RefID      string `json:"ref_id"`
			Status     string `json:"status"`
		} `json:"data"`
	}
	_ = json.Unmarshal(n.Body, &body) // what can't be read is not shown, but forwarded
	return forwarded{
		ID: n.ID, Time: n.Time, Event: body.Event, Reference: cmp.Or(body.Data.ExternalID, body.Data.RefID), Status: body.Data.Status,
	}
}

func (p *program) line(f forwarded) error {
	if p.json {
		return json.NewEncoder(p.out).Encode(f)
	}
	became := strconv.Itoa(f.Answer)
	if f.Error != "" {
		became = "no answer (" + f.Error + ")"
	}
	if f.Tries > 1 {
		became += fmt.Sprintf(", %d tries", f.Tries)
	}
	if !f.done() {
		became += ", given up"
	}
	cells := []string{cmp.Or(f.Time, "-"), cmp.Or(f.Event, "-"), cmp.Or(f.Reference, "-"), cmp.Or(f.Status, "-"), f.ID, "->", became}
	_, err := fmt.Fprintln(p.out, printable(strings.Join(cells, "  ")))
	return err
}

func (l *listener) say(format string, values ...any) {
	_, _ = fmt.Fprintf(l.program.err, format+"\n", values...) // nobody is there to be told
}

// printable keeps what others wrote from steering the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '·'
	}, text)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
