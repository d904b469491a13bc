package sdktest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

// envBug names the bug that is planted in a reference plugin.
const envBug = "SDKTEST_BUG"

const exampleManifest = `{
	"manifest": 1, "name": "example", "version": "1.0.0", "title": "Example", "lookup": "read", "settles_within": "30s",
	"notifications": true, "verifies": true, "references": {"longest": 64, "alphabet": "0-9a-f"},
	"connection": {"type": "object", "properties": {
		"passphrase": {"type": "string", "writeOnly": true},
		"reports": {"oneOf": [{"type": "object", "required": ["directory"]}, {"type": "object", "properties": {"feed": {"type": "string", "writeOnly": true}}}]}
	}},
	"operations": [
		{"path": "/example/pay", "kind": "payment", "summary": "Pay", "timeout": "5s", "reference": "/id", "amount": "/amount",
		 "request": {"type": "object", "required": ["amount"], "additionalProperties": false,
			"properties": {"id": {"type": "string"}, "amount": {"type": "integer", "minimum": 1, "maximum": 1000000000000}, "late": {"type": "boolean"}}},
		 "result": {"type": "object", "required": ["payment_url"], "properties": {"payment_url": {"type": "string"}}}, "response": {"type": "object"}},
		{"path": "/example/paid", "status_of": "/example/pay", "summary": "Status", "reference": "/id",
		 "request": {"type": "object", "properties": {"id": {"type": "string"}}}, "response": {"type": "object"}},
		{"path": "/example/end", "cancel_of": "/example/pay", "summary": "End", "timeout": "5s", "reference": "/id",
		 "request": {"type": "object", "properties": {"id": {"type": "string"}}}, "response": {"type": "object"}},
		{"path": "/example/refund", "kind": "refund", "refund_of": "/example/pay", "summary": "Refund", "timeout": "5s",
		 "reference": "/refund", "payment": "/id", "amount": "/amount",
		 "request": {"type": "object", "required": ["id", "refund"], "additionalProperties": false,
			"properties": {"id": {"type": "string"}, "refund": {"type": "string"}, "amount": {"type": "integer", "minimum": 1, "maximum": 1000000000000}}},
		 "result": {"type": "object"}, "response": {"type": "object"}},
		{"path": "/example/refunded", "status_of": "/example/refund", "summary": "Status", "reference": "/refund",
		 "request": {"type": "object", "properties": {"refund": {"type": "string"}}}, "response": {"type": "object"}},
		{"path": "/example/rate", "kind": "query", "summary": "Rate", "timeout": "5s", "request": {"type": "object"},
		 "result": {"type": "object", "required": ["rate"]}, "response": {"type": "object"}}
	]}`

const exampleExamples = `{
	"own_errors": true, "signed": ["body", "X-Signature"],
	"returns": ["refund", "chargeback"],
	"examples": [
		{"name": "pay", "operation": "/example/pay", "body": {"amount": 100}, "outcome": "pending"},
		{"name": "late", "operation": "/example/pay", "body": {"amount": 100, "late": true}, "outcome": "pending", "payer_first": true},
		{"name": "unlucky", "operation": "/example/pay", "body": {"amount": 13}, "outcome": "refused", "code": "PROVIDER_REJECTED"},
		{"name": "end", "operation": "/example/end", "body": {}, "outcome": "done", "ends": "pay", "leaves": "expired"},
		{"name": "rate", "operation": "/example/rate", "body": {}, "outcome": "done"}
	]}`

// adapter is a sound plugin, unless it has a bug.
type adapter struct {
	bug     string
	clients sdk.Instances[*account]

	one      sync.Mutex // of a bug that locks for everybody
	inFlight atomic.Int64
	mu       sync.Mutex
	kept     [][]byte        // of a bug that forgets nothing
	made     map[string]bool // of a bug that asks its memory
}

type account struct {
	Key   string `json:"key"`
	Token string `json:"token"`
	URL   string `json:"url"`

	Passphrase string `json:"passphrase"`
	Reports    struct {
		Feed string `json:"feed"`
	} `json:"reports"`

	http *http.Client
}

func serveReference() {
	if len(os.Args) > 1 && os.Args[1] == "sandbox" {
		os.Exit(program().Main(os.Args[2:]))
	}
	if os.Getenv(envBug) == "payments: starts a child of its own" && len(os.Args) == 1 {
		child := exec.Command("/bin/sleep", "600")
		_ = child.Start() // where it can't, the test says that there is none
	}
	provider, bug, _ := strings.Cut(os.Getenv(envBug), ": ")
	a := &adapter{bug: bug, made: map[string]bool{}}
	switch provider {
	case "orders":
		serveOrders(a)
	case "collections":
		serveCollections(a)
	case "transfers":
		serveTransfers(a)
	}
	document := exampleManifest
	if a.bug == "serves another manifest" {
		document = strings.Replace(document, "1.0.0", "1.0.1", 1)
	}
	sdk.Serve([]byte(document), sdk.Handlers{
		Calls: map[string]func(context.Context, sdk.Call) sdk.Result{
			"/example/pay": a.pay, "/example/end": a.end, "/example/refund": a.refund, "/example/rate": a.rate,
		},
		Lookup: a.lookup,
		Notify: a.notify,
		Verify: a.verify,
	})
}

func (a *adapter) account(c sdk.Connection) (*account, error) {
	switch a.bug {
	case "uses one account for all merchants":
		c.MerchantID = "everybody"
	case "uses one account for both modes":
		c.Mode = "both"
	case "keeps the first credentials":
		c.Version = 1
	case "makes a client for each call":
		c.Version = 0
	}
	return a.clients.Get(c, func(c sdk.Connection) (*account, error) {
		made := &account{http: upstream.NewClient()}
		if a.bug == "follows redirects" {
			made.http.CheckRedirect = nil
		}
		return made, json.Unmarshal(c.Credentials, made)
	})
}

// What the upstream answers in place of a charge.
var (
	errNothing = errors.New("nothing there")
	errRefused = errors.New("refused")
	errKey     = errors.New("the upstream does not take the key")
	errLimit   = errors.New("asked too often")
	errBroken  = errors.New("broken, as the upstream says itself")
	errUnclear = errors.New("not clear")
	errUnsent  = errors.New("not sent")
)

// maxAnswer is the longest answer that is read.
const maxAnswer = 1 << 20

// fetch sends a request and reads a good answer.
func (a *adapter) fetch(ctx context.Context, c sdk.Connection, method, path string, body, into any) error {
	who, err := a.account(c)
	if err != nil {
		return errUnsent
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return errUnsent
	}
	request, err := http.NewRequestWithContext(ctx, method, who.URL+path, bytes.NewReader(encoded))
	if err != nil {
		return errUnsent
	}
	request.Header.Set("Authorization", who.Key)
	if a.bug == "logs its requests" {
		_, _ = syscall.Write(2, fmt.Appendln(nil, "request", request.Header))
	}
	if a.bug == "logs the passphrase" {
		_, _ = syscall.Write(2, []byte("signing with "+who.Passphrase+"\n"))
	}
	if a.bug == "leaves answers open" {
		if left, err := who.http.Transport.RoundTrip(request.Clone(context.WithoutCancel(ctx))); err == nil {
			runtime.KeepAlive(left) // its body is never closed
		}
		request.Body = io.NopCloser(bytes.NewReader(encoded))
	}
	most := int64(maxAnswer)
	if a.bug == "reads answers without end" {
		most = 1 << 40
	}
	got, cut := upstream.Ask(who.http, request, most)
	if cut != nil && method == http.MethodPost && a.bug == "sends again what was cut" || cut == nil && got.Status == http.StatusBadGateway && a.bug == "sends again after a 502" {
		request.Body = io.NopCloser(bytes.NewReader(encoded))
		got, cut = upstream.Ask(who.http, request, most)
	}
	switch {
	case cut != nil && !cut.Sent:
		return errUnsent
	case cut != nil:
		return fmt.Errorf("%w: %w", errUnclear, cut.Err)
	}
	return a.read(got, into)
}

// read takes an answer for what the upstream says in its own words.
func (a *adapter) read(got upstream.Answer, into any) error {
	var said struct {
		Error  string `json:"error"`
		Broken bool   `json:"broken"`
	}
	_ = json.Unmarshal(got.Body, &said) // what can't be read says nothing
	switch {
	case got.Status == http.StatusOK:
		if err := json.Unmarshal(got.Body, into); err != nil && a.bug != "believes what it can't read" {
			return errUnclear
		}
		return nil
	case got.Status == http.StatusNotFound && (said.Error == "nothing" || a.bug == "takes any 404 for not found"):
		return errNothing
	case got.Status == http.StatusUnprocessableEntity && said.Error != "", got.Status/100 == 4 && a.bug == "takes any 4xx for a refusal":
		return errRefused
	case got.Status == http.StatusUnauthorized && said.Error != "":
		return errKey
	case got.Status == http.StatusTooManyRequests && a.bug != "takes a limit for an outage":
		return errLimit
	case got.Status == http.StatusInternalServerError && said.Broken:
		return errBroken
	case a.bug == "quotes the upstream":
		return fmt.Errorf("%w: %s", errUnclear, got.Body)
	}
	return errUnclear
}

func (a *adapter) ask(ctx context.Context, c sdk.Connection, method, path string, body any) (got charge, err error) {
	err = a.fetch(ctx, c, method, path, body, &got)
	if err == nil && got.ID == "" && a.bug != "believes what it can't read" && a.bug != "takes an empty answer for a good one" {
		err = errUnclear
	}
	return got, err
}

func (a *adapter) byReference(ctx context.Context, c sdk.Connection, reference string) (charge, error) {
	return a.ask(ctx, c, http.MethodGet, "/charges?ref="+url.QueryEscape(reference), nil)
}

// prepare is what a bug does before a call.
func (a *adapter) prepare(call sdk.Call) (done func()) {
	switch a.bug {
	case "locks for all merchants":
		a.one.Lock()
		return a.one.Unlock
	case "stops the whole process":
		if a.inFlight.Add(1) == 32 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		}
		return func() { a.inFlight.Add(-1) }
	case "remembers every call":
		a.mu.Lock()
		defer a.mu.Unlock()
		a.kept = append(a.kept, bytes.Repeat([]byte(call.Reference), 20_000))
	case "takes a thread for each call":
		go func() {
			runtime.LockOSThread()
			_, _ = syscall.Read(blocked(), make([]byte, 1))
		}()
	}
	return func() {}
}

// blocked is a descriptor that never has anything to read, one for all.
var blocked = sync.OnceValue(func() int {
	var ends [2]int
	_ = syscall.Pipe(ends[:])
	return ends[0]
})

func (a *adapter) pay(ctx context.Context, c sdk.Call) sdk.Result {
	defer a.prepare(c)()
	if a.bug == "does not hear that its time is over" {
		ctx = context.WithoutCancel(ctx)
	}
	if a.bug != "makes a second one" {
		switch made, err := a.byReference(ctx, c.Connection, c.Reference); {
		case err == nil:
			return a.accepted(made, c)
		case !errors.Is(err, errNothing):
			return a.unsent(err)
		}
	}
	if !c.SendBy.IsZero() && time.Now().After(c.SendBy) && a.bug != "looks at send_by only once" {
		return sdk.DidNotSend(sdk.BlameNone, "send_by has passed")
	}
	if deadline, ok := ctx.Deadline(); ok && a.bug == "takes the end of its time for not sent" {
		var cancel context.CancelFunc // a limit of its own, so that what it says then arrives on a busy machine
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	made, err := a.ask(ctx, c.Connection, http.MethodPost, "/charges", a.charge(c))
	if err != nil {
		return a.failed(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.made[c.Reference] = true
	return a.accepted(made, c)
}

// charge is what is asked for.
func (a *adapter) charge(c sdk.Call) charge {
	asked := charge{Ref: c.Reference, Amount: c.Amount}
	var body struct{ Late bool }
	if json.Unmarshal(c.Body, &body) == nil {
		asked.Late = body.Late
	}
	switch a.bug {
	case "asks for another amount":
		asked.Amount++
	case "counts with 32 bits":
		asked.Amount = money.Amount(int32(asked.Amount))
	case "counts with floats":
		asked.Amount = money.Amount(float32(asked.Amount))
	}
	return asked
}

func (a *adapter) accepted(made charge, c sdk.Call) sdk.Result {
	var data any = map[string]string{"payment_url": "http://example/pay/" + made.ID}
	if a.bug == "answers what it did not declare" {
		data = map[string]int{"payment_url": 1}
	}
	r := sdk.Accepted(made.ID, time.Time{}, data)
	if a.bug == "shows the key" {
		r.Detail = "asked with " + string(c.Connection.Credentials)
	}
	if who, err := a.account(c.Connection); err == nil && a.bug == "shows a secret within another member" {
		r.Detail = "reported at " + who.Reports.Feed
	}
	return r
}

// unsent is a call that was not made, because what comes before it failed.
func (a *adapter) unsent(err error) sdk.Result {
	switch {
	case errors.Is(err, errKey) && a.bug == "takes a bad key for a refusal", errors.Is(err, errRefused):
		return sdk.Refuse(sdk.RefuseOther, "no")
	case errors.Is(err, errKey):
		return sdk.DidNotSend(sdk.BlameAccount, err.Error())
	case errors.Is(err, errLimit):
		return sdk.DidNotSend(sdk.BlameLimit, err.Error())
	}
	return sdk.DidNotSend(sdk.BlameUpstream, err.Error())
}

// failed is a call that has no good answer.
func (a *adapter) failed(err error) sdk.Result {
	switch {
	case errors.Is(err, errRefused) && a.bug != "does not believe refusals":
		return sdk.Refuse(sdk.RefuseOther, "unlucky")
	case errors.Is(err, errKey), errors.Is(err, errLimit), errors.Is(err, errUnsent):
		return a.unsent(err)
	case a.bug == "takes every failure for not sent":
		return sdk.DidNotSend(sdk.BlameUpstream, err.Error())
	case a.bug == "takes an error for not sent" && errors.Is(err, errBroken):
		return sdk.DidNotSend(sdk.BlameUpstream, err.Error())
	case a.bug == "takes the end of its time for not sent" && errors.Is(err, context.DeadlineExceeded):
		return sdk.DidNotSend(sdk.BlameUpstream, err.Error())
	case a.bug == "blames nobody":
		return sdk.DontKnow(sdk.BlameNone, err.Error())
	case a.bug == "hears an end in any failure", errors.Is(err, errBroken) && a.bug != "hears no end":
		return sdk.UpstreamError(err.Error())
	}
	return sdk.DontKnow(sdk.BlameUpstream, err.Error())
}

func (a *adapter) end(ctx context.Context, c sdk.Call) sdk.Result {
	if a.bug == "ends nothing" {
		return sdk.Finished(c.ProviderReference, struct{}{})
	}
	reference := c.ProviderReference
	if a.bug == "ends the newest" {
		reference = "newest"
	}
	ended, err := a.ask(ctx, c.Connection, http.MethodPost, "/charges/"+reference+"/end", nil)
	switch {
	case err != nil && a.bug == "takes a failed end for an end":
		return sdk.Finished(c.ProviderReference, struct{}{})
	case err != nil && a.bug == "takes a failed end for a refusal":
		return sdk.Refuse(sdk.RefuseOther, "it can't be ended")
	case err != nil && a.bug == "takes a failed end for not sent":
		return sdk.DidNotSend(sdk.BlameUpstream, err.Error())
	case errors.Is(err, errUnsent), errors.Is(err, errLimit):
		return a.unsent(err)
	case err != nil:
		return sdk.DontKnow(sdk.BlameUpstream, err.Error())
	case ended.State == "paid" && a.bug != "ends what is paid":
		return sdk.Refuse(sdk.RefuseOther, "it is paid")
	}
	return sdk.Finished(c.ProviderReference, struct{}{})
}

func (a *adapter) verify(ctx context.Context, c sdk.Connection) sdk.Result {
	if a.bug == "keeps what it verified" {
		c.Version = 1
	}
	_, err := a.byReference(ctx, c, "none")
	switch {
	case errors.Is(err, errNothing), a.bug == "verifies anything", a.bug == "verifies what it could not ask" && !errors.Is(err, errKey):
		return sdk.Usable("")
	case errors.Is(err, errKey), a.bug == "takes an outage for bad credentials", a.bug == "takes a limit for bad credentials" && errors.Is(err, errLimit):
		return sdk.DidNotSend(sdk.BlameAccount, err.Error())
	}
	return sdk.DontKnow(sdk.BlameUpstream, err.Error())
}

func (a *adapter) rate(ctx context.Context, c sdk.Call) sdk.Result {
	if a.bug == "answers one merchant with another's data" {
		c.Connection.MerchantID = "everybody"
	}
	var got map[string]int
	err := a.fetch(ctx, c.Connection, http.MethodGet, "/rate", nil, &got)
	switch {
	case err == nil && got["rate"] == 0 && a.bug != "answers a query with nothing":
		err = errUnclear
	case err == nil && a.bug == "answers another query":
		got = map[string]int{}
	}
	switch {
	case err != nil && a.bug == "answers a query from nowhere":
		return sdk.Finished("", map[string]int{"rate": 1})
	case err != nil && a.bug == "refuses a query that failed":
		return sdk.Refuse(sdk.RefuseOther, "no rate")
	case err != nil:
		return sdk.DontKnow(sdk.BlameUpstream, err.Error())
	}
	return sdk.Finished("", got)
}
