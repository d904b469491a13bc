package store

import (
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// write is what a composed statement's parameters are taken from. Each statement reads
// a part of it.
type write struct {
	owner     movement.Owner
	id        uuid.UUID // of the movement or adjustment
	reference string
	attempt   int
	amount    money.Amount
	provider  string
	now       time.Time
	to        string // the state that it gets

	reserved *movement.Movement // of a reservation
	account  movement.AccountID
	change   *movement.Change  // of an applied change
	then     movement.Movement // of a recorded fact: as it leaves the movement
	from     []string          // the states that it may leave
	refusal  *string
	returns  *string

	transition    uuid.UUID
	event, detail string // of the history, or the audit's detail
	callback      *movement.CallbackEvent
	trace         string // of which the callback is a consequence, "" where none is kept
	mail          *movement.Mail
	posted        ledger.Transaction
	claim         *movement.Claim
	aloneBefore   int64 // how often the operator had claimed alone
	usage         usage
	drawn         drawnAmounts

	seen     *movement.StatementLine // before it is assigned
	matches  []byte
	payments []string

	subject, reason, factID string // of an exception
	operator, action        string
	origin                  tenants.Origin
	resolution              string
	audit                   uuid.UUID
	times                   int64 // that the entry stands for
	seal                    func(digest []byte) []byte
}

// drawnAmounts are the payable amounts that a collection may get, and at what place.
type drawnAmounts struct {
	amounts []int64
	places  []int32
}

// parameter is a parameter's type in SQL and where its value comes from.
type parameter struct {
	kind  string
	value func(*write) any
}

// parameters are those of all fragments, by name. An id is given as its bytes: as a
// uuid.UUID it would be written out and read again on its way.
var parameters = map[string]parameter{
	"merchant_id": {"TEXT", func(w *write) any { return w.owner.MerchantID }},
	"mode":        {"TEXT", func(w *write) any { return w.owner.Mode }},
	"id":          {"UUID", func(w *write) any { return [16]byte(w.id) }},
	"reference":   {"TEXT", func(w *write) any { return w.reference }},
	"attempt":     {"INT4", func(w *write) any { return int32(w.attempt) }},
	"amount":      {"INT8", func(w *write) any { return int64(w.amount) }},
	"provider":    {"TEXT", func(w *write) any { return w.provider }},
	"now":         {"TIMESTAMPTZ", func(w *write) any { return w.now }},
	"to_state":    {"TEXT", func(w *write) any { return w.to }},
	"resolution":  {"TEXT", func(w *write) any { return w.resolution }},

	"kind":               {"TEXT", func(w *write) any { return string(w.reserved.Kind) }},
	"operation":          {"TEXT", func(w *write) any { return w.reserved.Operation }},
	"request":            {"TEXT", func(w *write) any { return string(w.reserved.Request) }},
	"connection_owner":   {"TEXT", func(w *write) any { return string(w.reserved.ConnectionOwner) }},
	"connection_account": {"TEXT", func(w *write) any { return w.reserved.ConnectionAccount }},
	"connection_version": {"INT8", func(w *write) any { return w.reserved.ConnectionVersion }},
	"callback_url":       {"TEXT", func(w *write) any { return w.reserved.CallbackURL }},
	"request_id":         {"TEXT", func(w *write) any { return w.reserved.RequestID }},
	"policy_version":     {"TEXT", func(w *write) any { return w.reserved.PolicyVersion }},
	"decision_id":        {"TEXT", func(w *write) any { return w.reserved.DecisionID }},
	"send_by":            {"TIMESTAMPTZ", func(w *write) any { return w.reserved.SendBy }},
	"expires_at":         {"TIMESTAMPTZ", func(w *write) any { return optional(w.reserved.ExpiresAt) }},
	"due_bucket":         {"INT4", func(w *write) any { return int32(w.reserved.ID.Bucket()) }},
	"due_at":             {"TIMESTAMPTZ", func(w *write) any { return optional(w.reserved.DueAt) }},
	"cost":               {"INT8", func(w *write) any { return int64(w.reserved.Cost) }},
	"charge":             {"TEXT", func(w *write) any { return string(w.reserved.Charge) }},
	"quote":              {"TEXT", func(w *write) any { return text(w.reserved.Quote) }},
	"fee":                {"INT8", func(w *write) any { return int64(w.reserved.Fee) }},
	"name_match":         {"BOOL", func(w *write) any { return w.reserved.NameMatch }},
	"destination":        {"TEXT", func(w *write) any { return w.reserved.Destination }},
	"fingerprint":        {"TEXT", func(w *write) any { return w.reserved.Fingerprint }},

	"account_id":     {"UUID", func(w *write) any { return [16]byte(w.account) }},
	"account_bucket": {"INT4", func(w *write) any { return int32(w.account.Bucket()) }},
	"reading_due":    {"TIMESTAMPTZ", func(w *write) any { return w.now.Add(movement.ReadEvery) }},
	"reading_first":  {"TIMESTAMPTZ", func(w *write) any { return w.now.Add(reservedWithin) }},
	"beginning":      {"TIMESTAMPTZ", func(*write) any { return time.Time{} }},
	"free_at":        {"TIMESTAMPTZ", func(w *write) any { return micro(w.reserved.Reserved.FreeAt) }},
	"drawn_amounts":  {"INT8[]", func(w *write) any { return w.drawn.amounts }},
	"drawn_places":   {"INT4[]", func(w *write) any { return w.drawn.places }},

	"from_states":        {"TEXT[]", func(w *write) any { return w.from }},
	"ended_in":           {"TEXT", func(w *write) any { return w.change.To.End() }},
	"ends":               {"BOOL", func(w *write) any { return w.change.To.Ends() }},
	"posts":              {"BOOL", func(w *write) any { return w.change.Posting != nil }},
	"poll_version":       {"INT8", func(w *write) any { return w.change.Movement.Version }},
	"new_send_by":        {"TIMESTAMPTZ", func(w *write) any { return micro(w.change.SendBy) }},
	"next_poll":          {"TIMESTAMPTZ", func(w *write) any { return optional(w.change.NextPoll) }},
	"result":             {"TEXT", func(w *write) any { return text(w.change.Result) }},
	"earlier_result":     {"TEXT", func(w *write) any { return string(w.change.Movement.Result) }},
	"answer":             {"TEXT", func(w *write) any { return text(w.change.Answer) }},
	"refusal":            {"TEXT", func(w *write) any { return w.refusal }},
	"provider_reference": {"TEXT", func(w *write) any { return w.change.ProviderReference }},
	"new_expires_at":     {"TIMESTAMPTZ", func(w *write) any { return optional(w.change.ExpiresAt) }},
	"new_cost":           {"INT8", func(w *write) any { return int64(w.change.Cost) }},
	"paid_at":            {"TIMESTAMPTZ", func(w *write) any { return optional(w.change.PaidAt) }},
	"channel":            {"TEXT", func(w *write) any { return w.change.Channel }},
	"new_paid_amount":    {"INT8", func(w *write) any { return int64(w.change.PaidAmount) }},
	"paid_late_at":       {"TIMESTAMPTZ", func(w *write) any { return optional(w.then.PaidLateAt) }},
	"returned_at":        {"TIMESTAMPTZ", func(w *write) any { return optional(w.then.ReturnedAt) }},
	"returns":            {"TEXT", func(w *write) any { return w.returns }},
	"recorded_ended":     {"TEXT", func(w *write) any { return w.then.EndedIn() }},
	"seen_sequence":      {"INT4", func(w *write) any { return int32(w.change.Movement.Sequence) }},
	"gives_back":         {"BOOL", func(w *write) any { return w.change.Effect == movement.MoneyBack }},

	"transition_id": {"UUID", func(w *write) any { return [16]byte(w.transition) }},
	"event":         {"TEXT", func(w *write) any { return w.event }},
	"detail":        {"TEXT", func(w *write) any { return w.detail }},

	"callback_id":     {"UUID", func(w *write) any { return [16]byte(w.callback.ID) }},
	"callback_event":  {"TEXT", func(w *write) any { return w.callback.Event }},
	"callback_to":     {"TEXT", func(w *write) any { return w.callback.URL }},
	"callback_trace":  {"TEXT", func(w *write) any { return w.trace }},
	"callback_body":   {"TEXT", func(w *write) any { return string(w.callback.Body) }},
	"callback_state":  {"TEXT", func(w *write) any { return string(w.callback.State()) }},
	"callback_bucket": {"INT4", func(w *write) any { return w.callback.Bucket() }},
	"callback_due_at": {"TIMESTAMPTZ", func(w *write) any { return w.callback.DueAt(w.now) }},

	"mail_id":      {"UUID", func(w *write) any { return [16]byte(w.mail.ID) }},
	"mail_to":      {"TEXT", func(w *write) any { return w.mail.To }},
	"mail_subject": {"TEXT", func(w *write) any { return w.mail.Subject }},
	"mail_body":    {"TEXT", func(w *write) any { return w.mail.Text }},
	"mail_bucket":  {"INT4", func(w *write) any { return w.mail.Bucket() }},
	"mail_until":   {"TIMESTAMPTZ", func(w *write) any { return optional(w.mail.Until) }},

	"posted_step":        {"INT2", func(w *write) any { return int16(w.posted.Step) }},
	"posted_kind":        {"TEXT", func(w *write) any { return string(w.posted.Kind) }},
	"posted_available":   {"INT8", func(w *write) any { return int64(w.posted.Available) }},
	"posted_held":        {"INT8", func(w *write) any { return int64(w.posted.Held) }},
	"posted_margin":      {"INT8", func(w *write) any { return int64(w.posted.Margin) }},
	"posted_cost":        {"INT8", func(w *write) any { return int64(w.posted.Legs.Cost) }},
	"posted_deposit":     {"INT8", func(w *write) any { return int64(w.posted.Deposit) }},
	"posted_adjustments": {"INT8", func(w *write) any { return int64(w.posted.Adjustments) }},

	"usage":          {"TEXT", func(w *write) any { return w.usage.document }},
	"usage_names":    {"TEXT[]", func(w *write) any { return w.usage.names }},
	"usage_periods":  {"TEXT[]", func(w *write) any { return w.usage.periods }},
	"usage_amounts":  {"INT8[]", func(w *write) any { return w.usage.amounts }},
	"usage_ceilings": {"INT8[]", func(w *write) any { return w.usage.ceilings }},

	"payment":       {"TEXT", func(w *write) any { return w.seen.Payment }},
	"line_state":    {"TEXT", func(w *write) any { return string(w.seen.State) }},
	"from_movement": {"UUID", func(w *write) any { return someID(w.seen.Movement) }},
	"to_movement":   {"UUID", func(w *write) any { return [16]byte(w.id) }},
	"matches":       {"JSONB", func(w *write) any { return w.matches }},
	"payments":      {"TEXT[]", func(w *write) any { return w.payments }},

	"subject":         {"TEXT", func(w *write) any { return w.subject }},
	"reason":          {"TEXT", func(w *write) any { return w.reason }},
	"fact_id":         {"TEXT", func(w *write) any { return w.factID }},
	"claimed_payment": {"TEXT", func(w *write) any { return w.claim.Payment }},
	"claimed_alone":   {"BOOL", func(w *write) any { return w.claim.Alone }},
	"alone_before":    {"INT8", func(w *write) any { return w.aloneBefore }},
	"operator":        {"TEXT", func(w *write) any { return w.operator }},
	"action":          {"TEXT", func(w *write) any { return w.action }},
	"origin":          {"TEXT", func(w *write) any { return string(w.origin) }},
	"audit_id":        {"UUID", func(w *write) any { return [16]byte(w.audit) }},
	"times":           {"INT8", func(w *write) any { return w.times }},
	"audit_mac":       {"BYTEA", func(w *write) any { return w.auditMAC() }},
}

// someID is an id, or nil for none.
func someID(id movement.ID) *uuid.UUID {
	if id == (movement.ID{}) {
		return nil
	}
	return new(uuid.UUID(id))
}
