package engine

import (
	"context"
	"net/http"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Request is a merchant's request after authentication, with a body that the
// operation's schema has accepted.
type Request struct {
	Identity       tenants.Identity
	Operation      *catalog.Operation
	Body           catalog.Document // without credentials, null and ""
	IdempotencyKey string           // of the header, or ""
	CallbackURL    string           // checked, or ""
	RequestID      string
	PolicyVersion  string
	DecisionID     string
	Remaining      *int64         // what the request's quota leaves, nil where none counts it
	Limits         policy.Limits  // what the policy answered for the merchant
	Zone           *time.Location // whose days limits of money out are counted by
	// Left reads what the quotas leave, for an answer that has to tell it of a request
	// that is not counted; nil where none is.
	Left func(ctx context.Context) *int64
	// Reconsider asks the policy again with what an inquiry has told; nil where it
	// is not asked.
	Reconsider func(ctx context.Context, told map[string]any) error
}

// Answer is what a merchant gets: the envelope's data, with message and status
// at the top where the contract puts them.
type Answer struct {
	Data     any
	Message  string
	Status   string
	Replayed bool // an earlier request under this reference was answered so
	// Earlier says that this is about what an earlier request has made, also where
	// it is an error: it has used its quota then, and uses none again.
	Earlier bool
	// Asked says of an error that the provider was asked and has refused: its no is
	// an answer, which uses a quota. It is told of queries alone.
	Asked bool
	// Receipt is to be given to [Engine.Delivered] once the answer has reached its
	// caller, where it is set.
	Receipt movement.ID
}

// Notification is an inbound request on a connection's notification route.
type Notification struct {
	Provider  tenants.Provider
	Token     tenants.NotifyToken
	RequestID string
	Method    string
	Query     string
	Header    http.Header
	Body      []byte
}

// Checkout is what the hosted checkout page shows of a payment.
type Checkout struct {
	Merchant    string // its name
	Reference   string
	Description string
	Amount      int64  // whole rupiah
	Status      string // the merchant's word: PENDING, PAID, EXPIRED, FAILED
	QR          string // to be shown as an image, or ""
	PaymentURL  string // the provider's page, or ""
	SuccessURL  string // where the payer goes when it is paid, or ""
	ExpiresAt   string // ISO 8601 UTC, or ""
	Test        bool
}
