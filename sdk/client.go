package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/pluginpb"
	"github.com/seed-f006e74d/gerbang/sdk/uptime"
)

// Every conversion between the wire and the types of this package is in this
// file, in pairs. The enums of both have the same numbers; a number that this
// version does not know becomes the zero value, which is the safe one, and the detail
// says so.

func connectionToWire(c Connection) *pluginpb.Connection {
	return &pluginpb.Connection{MerchantId: c.MerchantID, Mode: c.Mode, Version: c.Version, Credentials: c.Credentials}
}

func connectionFromWire(c *pluginpb.Connection) Connection {
	return Connection{MerchantID: c.GetMerchantId(), Mode: c.GetMode(), Version: c.GetVersion(), Credentials: c.GetCredentials()}
}

func callToWire(c Call) *pluginpb.CallRequest {
	return &pluginpb.CallRequest{
		Operation: c.Operation, RequestId: c.RequestID, Connection: connectionToWire(c.Connection),
		Reference: c.Reference, ProviderReference: c.ProviderReference,
		Amount: int64(c.Amount), Body: c.Body, SendBy: timeToWire(c.SendBy), Cost: int64(c.Cost), Quote: c.Quote, Product: c.Product,
		Payment: paymentToWire(c.Payment),
	}
}

func callFromWire(c *pluginpb.CallRequest) Call {
	return Call{
		Operation: c.GetOperation(), RequestID: c.GetRequestId(), Connection: connectionFromWire(c.GetConnection()),
		Reference: c.GetReference(), ProviderReference: c.GetProviderReference(),
		Amount: money.Amount(c.GetAmount()), Body: c.GetBody(), SendBy: timeFromWire(c.GetSendBy()),
		Cost: money.Amount(c.GetCost()), Quote: c.GetQuote(), Product: c.GetProduct(),
		Payment: paymentFromWire(c.GetPayment()),
	}
}

func quoteToWire(q Quote) *pluginpb.QuoteRequest {
	return &pluginpb.QuoteRequest{
		Operation: q.Operation, RequestId: q.RequestID, Connection: connectionToWire(q.Connection),
		Reference: q.Reference, Body: q.Body, Product: q.Product,
	}
}

func quoteFromWire(q *pluginpb.QuoteRequest) Quote {
	return Quote{
		Operation: q.GetOperation(), RequestID: q.GetRequestId(), Connection: connectionFromWire(q.GetConnection()),
		Reference: q.GetReference(), Body: q.GetBody(), Product: q.GetProduct(),
	}
}

func quotedToWire(q Quoted) *pluginpb.QuoteResponse {
	return &pluginpb.QuoteResponse{
		Outcome: pluginpb.Outcome(q.Outcome), Blame: pluginpb.Blame(q.Blame), Detail: text(q.Detail), //nolint:gosec // small enums
		Price: int64(q.Price), Fee: int64(q.Fee), Cost: int64(q.Cost), Held: q.Held, Open: q.Open,
		Data: q.Data, Name: text(q.Name), Destination: text(q.Destination), Refusal: refusalToWire(q.Outcome, q.Refusal),
	}
}

func quotedFromWire(w *pluginpb.QuoteResponse) Quoted {
	return Quoted{
		Outcome: Outcome(known(w.GetOutcome(), pluginpb.Outcome_name)), Blame: Blame(known(w.GetBlame(), pluginpb.Blame_name)),
		Detail: detailOf("outcome", w.GetOutcome(), pluginpb.Outcome_name, w.GetDetail()),
		Price:  money.Amount(w.GetPrice()), Fee: money.Amount(w.GetFee()), Cost: money.Amount(w.GetCost()), Held: w.GetHeld(), Open: w.GetOpen(),
		Data: w.GetData(), Name: w.GetName(), Destination: w.GetDestination(), Refusal: refusalFromWire(w.GetRefusal()),
	}
}

func resultToWire(r Result) *pluginpb.CallResponse {
	return &pluginpb.CallResponse{
		Outcome: pluginpb.Outcome(r.Outcome), Blame: pluginpb.Blame(r.Blame), Data: r.Data, //nolint:gosec // small enums
		ProviderReference: text(r.ProviderReference), ExpiresAt: timeToWire(r.ExpiresAt), Detail: text(r.Detail),
		Refusal: refusalToWire(r.Outcome, r.Refusal), Amount: int64(r.Amount), Errored: r.Errored,
	}
}

func refusalToWire(o Outcome, r Refusal) *pluginpb.Refusal {
	if o != Refused {
		return nil
	}
	w := &pluginpb.Refusal{Code: text(string(r.Code)), Message: text(r.Message)}
	for _, f := range r.Fields {
		w.Fields = append(w.Fields, &pluginpb.FieldFault{Field: text(f.Field), Message: text(f.Message)})
	}
	return w
}

func refusalFromWire(w *pluginpb.Refusal) Refusal {
	r := Refusal{Code: RefusalCode(w.GetCode()), Message: w.GetMessage()}
	for _, f := range w.GetFields() {
		r.Fields = append(r.Fields, FieldFault{Field: f.GetField(), Message: f.GetMessage()})
	}
	return r
}

func resultFromWire(w *pluginpb.CallResponse) Result {
	return Result{
		Outcome: Outcome(known(w.GetOutcome(), pluginpb.Outcome_name)), Blame: Blame(known(w.GetBlame(), pluginpb.Blame_name)),
		Data: json.RawMessage(w.GetData()), ProviderReference: w.GetProviderReference(),
		ExpiresAt: timeFromWire(w.GetExpiresAt()), Refusal: refusalFromWire(w.GetRefusal()), Amount: money.Amount(w.GetAmount()),
		Detail: detailOf("outcome", w.GetOutcome(), pluginpb.Outcome_name, w.GetDetail()),
		// Errored speaks of OUTCOME_UNKNOWN alone. Beside a number that is only taken for it
		// nobody knows what it means, and it would let "not found" prove something sooner.
		Errored: w.GetErrored() && isKnown(w.GetOutcome(), pluginpb.Outcome_name),
	}
}

func lookupToWire(l Lookup) *pluginpb.LookupRequest {
	return &pluginpb.LookupRequest{
		Operation: l.Operation, RequestId: l.RequestID, Connection: connectionToWire(l.Connection),
		Reference: l.Reference, ProviderReference: l.ProviderReference, Amount: int64(l.Amount), Body: l.Body,
		SentAt: timeToWire(l.SentAt), ExpiresAt: timeToWire(l.ExpiresAt), Cost: int64(l.Cost), Quote: l.Quote, SendBy: timeToWire(l.SendBy),
		Payment: paymentToWire(l.Payment),
	}
}

func lookupFromWire(l *pluginpb.LookupRequest) Lookup {
	return Lookup{
		Operation: l.GetOperation(), RequestID: l.GetRequestId(), Connection: connectionFromWire(l.GetConnection()),
		Reference: l.GetReference(), ProviderReference: l.GetProviderReference(),
		Amount: money.Amount(l.GetAmount()), Body: l.GetBody(),
		SentAt: timeFromWire(l.GetSentAt()), ExpiresAt: timeFromWire(l.GetExpiresAt()),
		Cost: money.Amount(l.GetCost()), Quote: l.GetQuote(), SendBy: timeFromWire(l.GetSendBy()),
		Payment: paymentFromWire(l.GetPayment()),
	}
}

func paymentToWire(p Payment) *pluginpb.Payment {
	if p == (Payment{}) {
		return nil
	}
	return &pluginpb.Payment{Reference: p.Reference, ProviderReference: p.ProviderReference}
}

func paymentFromWire(p *pluginpb.Payment) Payment {
	return Payment{Reference: p.GetReference(), ProviderReference: p.GetProviderReference()}
}

func statusUpdateToWire(f StatusUpdate) *pluginpb.StatusUpdate {
	return &pluginpb.StatusUpdate{
		Reference: text(f.Reference), ProviderReference: text(f.ProviderReference),
		Status: pluginpb.Status(f.Status), Blame: pluginpb.Blame(f.Blame), //nolint:gosec // small enums
		Amount: int64(f.Amount), Currency: text(f.Currency), EventId: text(f.EventID), At: timeToWire(f.At), Channel: text(f.Channel),
		Data: f.Data, ExpiresAt: timeToWire(f.ExpiresAt), Detail: text(f.Detail), Returns: returnsToWire(f.Returns),
	}
}

func returnsToWire(returns []Return) []*pluginpb.Return {
	var told []*pluginpb.Return
	for _, r := range returns {
		told = append(told, &pluginpb.Return{
			Id: text(r.ID), Amount: int64(r.Amount), Sort: pluginpb.ReturnSort(r.Sort), //nolint:gosec // a small enum
			At: timeToWire(r.At), Undone: r.Undone, UndoneAt: timeToWire(r.UndoneAt), Reference: text(r.Reference),
		})
	}
	return told
}

func returnsFromWire(told []*pluginpb.Return) []Return {
	var returns []Return
	for _, r := range told {
		returns = append(returns, Return{
			ID: r.GetId(), Amount: money.Amount(r.GetAmount()), Sort: ReturnSort(known(r.GetSort(), pluginpb.ReturnSort_name)),
			At: timeFromWire(r.GetAt()), Undone: r.GetUndone(), UndoneAt: timeFromWire(r.GetUndoneAt()), Reference: r.GetReference(),
		})
	}
	return returns
}

func statusUpdateFromWire(f *pluginpb.StatusUpdate) StatusUpdate {
	return StatusUpdate{
		Reference: f.GetReference(), ProviderReference: f.GetProviderReference(),
		Status: Status(known(f.GetStatus(), pluginpb.Status_name)), Blame: Blame(known(f.GetBlame(), pluginpb.Blame_name)),
		Amount: money.Amount(f.GetAmount()), Currency: f.GetCurrency(), EventID: f.GetEventId(), At: timeFromWire(f.GetAt()), Channel: f.GetChannel(),
		Data: f.GetData(), ExpiresAt: timeFromWire(f.GetExpiresAt()),
		Detail: detailOf("status", f.GetStatus(), pluginpb.Status_name, f.GetDetail()), Returns: returnsFromWire(f.GetReturns()),
	}
}

// verifiedToWire takes of a result what a verification can say.
func verifiedToWire(r Result) *pluginpb.VerifyResponse {
	return &pluginpb.VerifyResponse{
		Outcome: pluginpb.Outcome(r.Outcome), Blame: pluginpb.Blame(r.Blame), Detail: text(r.Detail), //nolint:gosec // small enums
		Account: text(r.ProviderReference), Refusal: refusalToWire(r.Outcome, r.Refusal), Mode: text(r.Mode),
	}
}

func verifiedFromWire(w *pluginpb.VerifyResponse) Result {
	return Result{
		Outcome: Outcome(known(w.GetOutcome(), pluginpb.Outcome_name)), Blame: Blame(known(w.GetBlame(), pluginpb.Blame_name)),
		Detail:            detailOf("outcome", w.GetOutcome(), pluginpb.Outcome_name, w.GetDetail()),
		ProviderReference: w.GetAccount(), Refusal: refusalFromWire(w.GetRefusal()), Mode: w.GetMode(),
	}
}

func statementToWire(s Statement) *pluginpb.StatementRequest {
	return &pluginpb.StatementRequest{
		RequestId: s.RequestID, Connection: connectionToWire(s.Connection), Cursor: s.Cursor,
		Limit: int32(min(s.Limit, math.MaxInt32)), From: timeToWire(s.From), //nolint:gosec // bounded
	}
}

func statementFromWire(w *pluginpb.StatementRequest) Statement {
	return Statement{
		RequestID: w.GetRequestId(), Connection: connectionFromWire(w.GetConnection()), Cursor: w.GetCursor(), Limit: int(w.GetLimit()),
		From: timeFromWire(w.GetFrom()),
	}
}

func pageToWire(r StatementPage) *pluginpb.StatementResponse {
	w := &pluginpb.StatementResponse{
		Known: r.Known, Cursor: text(r.Cursor), More: r.More, Through: timeToWire(r.Through),
		Blame: pluginpb.Blame(r.Blame), Detail: text(r.Detail), //nolint:gosec // a small enum
	}
	for _, e := range r.Lines {
		w.Lines = append(w.Lines, &pluginpb.StatementLine{
			Id: text(e.ID), Reference: text(e.Reference), Amount: int64(e.Amount), Currency: text(e.Currency),
			At: timeToWire(e.At), Reversed: e.Reversed, Failed: e.Failed, Outgoing: e.Outgoing, Data: e.Data,
		})
	}
	return w
}

func pageFromWire(w *pluginpb.StatementResponse) StatementPage {
	r := StatementPage{
		Known: w.GetKnown(), Cursor: w.GetCursor(), More: w.GetMore(), Through: timeFromWire(w.GetThrough()),
		Blame: Blame(known(w.GetBlame(), pluginpb.Blame_name)), Detail: w.GetDetail(),
	}
	for _, e := range w.GetLines() {
		r.Lines = append(r.Lines, StatementLine{
			ID: e.GetId(), Reference: e.GetReference(), Amount: money.Amount(e.GetAmount()), Currency: e.GetCurrency(),
			At: timeFromWire(e.GetAt()), Reversed: e.GetReversed(), Failed: e.GetFailed(), Outgoing: e.GetOutgoing(), Data: e.GetData(),
		})
	}
	return r
}

func notificationToWire(n Notification) *pluginpb.NotifyRequest {
	w := &pluginpb.NotifyRequest{
		Connection: connectionToWire(n.Connection), RequestId: n.RequestID,
		Method: text(n.Method), Query: text(n.Query), Body: n.Body,
	}
	for name, values := range n.Header {
		h := &pluginpb.Header{Name: text(name), Values: make([]string, 0, len(values))}
		for _, value := range values {
			h.Values = append(h.Values, text(value))
		}
		w.Headers = append(w.Headers, h)
	}
	return w
}

func notificationFromWire(n *pluginpb.NotifyRequest) Notification {
	header := make(http.Header, len(n.GetHeaders()))
	for _, h := range n.GetHeaders() {
		for _, v := range h.GetValues() {
			header.Add(h.GetName(), v)
		}
	}
	return Notification{
		Connection: connectionFromWire(n.GetConnection()), RequestID: n.GetRequestId(),
		Method: n.GetMethod(), Query: n.GetQuery(), Header: header, Body: n.GetBody(),
	}
}

func acknowledgementToWire(a Acknowledgement) *pluginpb.NotifyResponse {
	w := &pluginpb.NotifyResponse{Status: int32(a.Status), ContentType: text(a.ContentType), Body: a.Body, Detail: text(a.Detail)} //nolint:gosec // an HTTP status
	for _, f := range a.Updates {
		w.Updates = append(w.Updates, statusUpdateToWire(f))
	}
	return w
}

func acknowledgementFromWire(w *pluginpb.NotifyResponse) Acknowledgement {
	a := Acknowledgement{Status: int(w.GetStatus()), ContentType: w.GetContentType(), Body: w.GetBody(), Detail: w.GetDetail()}
	for _, f := range w.GetUpdates() {
		a.Updates = append(a.Updates, statusUpdateFromWire(f))
	}
	return a
}

// text makes a string fit for the wire, which refuses a whole message for one
// byte that is not UTF-8. What upstreams and strangers write is not ours to
// choose, and must not turn a clear answer into an unknown one.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// remaining is what is left until a moment of this machine's clock, when it is told to a
// plugin, and that moment by the uptime. Both are nil where there is no such moment.
func remaining(sendBy time.Time) (within, byUptime *durationpb.Duration) {
	if sendBy.IsZero() {
		return nil, nil
	}
	left := time.Until(sendBy)
	if uptime.Shared {
		byUptime = durationpb.New(uptime.Now() + left)
	}
	return durationpb.New(left), byUptime
}

// deadline is the moment by the plugin's own clock until which a call may be sent. Of a
// gateway that does not tell what is left it is the moment that it tells.
func deadline(within, byUptime *durationpb.Duration, told time.Time) time.Time {
	if within == nil {
		return told
	}
	left := within.AsDuration()
	if byUptime != nil && uptime.Shared {
		left = min(left, byUptime.AsDuration()-uptime.Now())
	}
	return time.Now().Add(left)
}

func timeToWire(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func timeFromWire(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

// Client is the gateway's side of one plugin process. Its errors are those of
// the transport; the outcome of a call that got one is unknown.
type Client struct {
	wire   pluginpb.ProviderClient
	conn   *grpc.ClientConn
	stream atomic.Pointer[callStream] // nil where the plugin offers none
}

// NewClient wraps a connection to a plugin.
func NewClient(conn *grpc.ClientConn) *Client {
	return &Client{wire: pluginpb.NewProviderClient(conn), conn: conn}
}

// Describe asks the plugin for its manifest and parses it. Where the plugin offers a
// stream of calls it is opened, and used from then on.
func (c *Client) Describe(ctx context.Context) (*manifest.Manifest, error) {
	response, err := c.wire.Describe(ctx, &pluginpb.DescribeRequest{})
	if err != nil {
		return nil, err
	}
	described, err := manifest.Parse(response.GetManifest())
	if err == nil && response.GetStreams() && c.stream.Load() == nil {
		c.stream.Store(openCallStream(ctx, c.wire))
	}
	return described, err
}

// StreamOver is closed when calls go without the stream that the plugin offers, which
// they do for as long as the process lives. It is nil where the plugin offers none.
func (c *Client) StreamOver() <-chan struct{} {
	if stream := c.stream.Load(); stream != nil {
		return stream.over
	}
	return nil
}

// WhyStreamOver is why StreamOver is closed, nil where it is not.
func (c *Client) WhyStreamOver() error {
	stream := c.stream.Load()
	if stream == nil {
		return nil
	}
	stream.mu.Lock()
	defer stream.mu.Unlock()
	return stream.why
}

// Streams tells whether calls share a stream now.
func (c *Client) Streams() bool { return c.stream.Load() != nil && c.WhyStreamOver() == nil }

// Call runs an operation.
func (c *Client) Call(ctx context.Context, call Call) (Result, error) {
	request := callToWire(call)
	request.TraceParent = parentOf(ctx)
	request.SendWithin, request.SendByUptime = remaining(call.SendBy)
	response, err := (*pluginpb.CallResponse)(nil), errUnwritten
	if stream := c.stream.Load(); stream != nil {
		response, err = stream.call(ctx, request)
	}
	if errors.Is(err, errUnwritten) {
		request.SendWithin, request.SendByUptime = remaining(call.SendBy) // it may have waited
		response, err = c.wire.Call(ctx, request)
	}
	if err != nil {
		return Result{}, err
	}
	hear(ctx, response.GetExchanges())
	return resultFromWire(response), nil
}

// Quote asks what an operation would cost.
func (c *Client) Quote(ctx context.Context, quote Quote) (Quoted, error) {
	request := quoteToWire(quote)
	request.TraceParent = parentOf(ctx)
	response, err := c.wire.Quote(ctx, request)
	if err != nil {
		return Quoted{}, err
	}
	hear(ctx, response.GetExchanges())
	return quotedFromWire(response), nil
}

// Lookup asks about a movement.
func (c *Client) Lookup(ctx context.Context, lookup Lookup) (StatusUpdate, error) {
	request := lookupToWire(lookup)
	request.TraceParent = parentOf(ctx)
	request.SendWithin, request.SendByUptime = remaining(lookup.SendBy)
	response, err := c.wire.Lookup(ctx, request)
	if err != nil {
		return StatusUpdate{}, err
	}
	hear(ctx, response.GetExchanges())
	return statusUpdateFromWire(response.GetUpdate()), nil
}

// Notify hands an inbound notification over. One that brings a status which this version
// does not know is an error.
func (c *Client) Notify(ctx context.Context, n Notification) (Acknowledgement, error) {
	request := notificationToWire(n)
	request.TraceParent = parentOf(ctx)
	response, err := c.wire.Notify(ctx, request)
	if err != nil {
		return Acknowledgement{}, err
	}
	hear(ctx, response.GetExchanges())
	if err := readable(response); err != nil {
		return Acknowledgement{}, err
	}
	return acknowledgementFromWire(response), nil
}

// Verify asks whether the upstream takes the credentials of a connection.
func (c *Client) Verify(ctx context.Context, connection Connection) (Result, error) {
	response, err := c.wire.Verify(ctx, &pluginpb.VerifyRequest{Connection: connectionToWire(connection)})
	if err != nil {
		return Result{}, err
	}
	return verifiedFromWire(response), nil
}

// Statement reads a page of the upstream's statement, from a cursor on.
func (c *Client) Statement(ctx context.Context, statement Statement) (StatementPage, error) {
	response, err := c.wire.Statement(ctx, statementToWire(statement))
	if err != nil {
		return StatementPage{}, err
	}
	return pageFromWire(response), nil
}

// Broken waits until the connection to the process is no longer usable, or the
// context ends. It notices the death of the process at once.
func (c *Client) Broken(ctx context.Context) error {
	for {
		state := c.conn.GetState()
		if state == connectivity.TransientFailure || state == connectivity.Shutdown || state == connectivity.Idle {
			return nil
		}
		if !c.conn.WaitForStateChange(ctx, state) {
			return ctx.Err()
		}
	}
}
