package sandbox

import (
	"net/http"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// Amounts that make something special happen. The first three are the
// upstream's own test amounts, the others are ours.
const (
	magicNotActivated  money.Amount = 10100
	magicUnavailable   money.Amount = 10101
	magicServerError   money.Amount = 10102
	magicTwice         money.Amount = 10110
	magicStaleAfter    money.Amount = 10111
	magicLost          money.Amount = 10112
	magicStaleBefore   money.Amount = 10113
	magicPaidByItself  money.Amount = 10114
	magicPaidAfterTime money.Amount = 10115
)

// Amounts of refunds. But for magicRefundPending they are the upstream's own test amounts.
const (
	magicNoPartialRefund  money.Amount = 10301
	magicNoRefund         money.Amount = 10303
	magicRefundIneligible money.Amount = 10305
	magicRefundPending    money.Amount = 10310
	magicRefundTooLate    money.Amount = 20300
	magicRefundNoBalance  money.Amount = 20304
)

// magicRefundFailure is why a pending refund of an amount fails.
var magicRefundFailure = map[money.Amount]string{
	magicRefundTooLate: "INELIGIBLE_TRANSACTION", magicRefundNoBalance: "INSUFFICIENT_BALANCE",
}

const (
	// staleGap lies between two webhooks in the wrong order.
	staleGap = 2 * time.Second
	// selfPayGap is when magicPaidByItself is paid, and a pending refund ends.
	selfPayGap = 3 * time.Second
)

// Describe lists the magic amounts and where the pages are.
func (s *Simulator) Describe(base string) kit.Description {
	return kit.Description{
		Prefixes: []string{base + pagePrefix},
		Magic: []kit.Magic{
			{Value: magicNotActivated.String(), Effect: "create is refused: 403 CHANNEL_NOT_ACTIVATED"},
			{Value: magicUnavailable.String(), Effect: "create is refused: 503 CHANNEL_UNAVAILABLE, nothing is done"},
			{Value: magicServerError.String(), Effect: "create fails: 500 SERVER_ERROR, nothing is done"},
			{Value: magicTwice.String(), Effect: "each webhook is sent twice, with the same webhook-id"},
			{Value: magicStaleAfter.String(), Effect: "link: an outdated EXPIRED webhook follows 2 s after PAID; QR: the webhook comes 4 s late"},
			{Value: magicLost.String(), Effect: "no webhook at all: only a look-up finds out"},
			{Value: magicStaleBefore.String(), Effect: "link: an outdated EXPIRED webhook comes first, PAID 2 s later, and look-ups say PAID"},
			{Value: magicPaidByItself.String(), Effect: "is paid by itself after 3 s"},
			{Value: magicPaidAfterTime.String(), Effect: "link: can still be paid after it has expired (late money); QR codes always can"},
			{Value: magicNoPartialRefund.String(), Effect: "refund of so much is refused: 400 PARTIAL_REFUND_NOT_SUPPORTED"},
			{Value: magicNoRefund.String(), Effect: "refund of so much is refused: 400 REFUND_NOT_SUPPORTED"},
			{Value: magicRefundIneligible.String(), Effect: "refund of so much is refused: 403 INELIGIBLE_TRANSACTION"},
			{Value: magicRefundPending.String(), Effect: "refund of so much is PENDING, and succeeds after 3 s"},
			{Value: magicRefundTooLate.String(), Effect: "refund of so much is PENDING, and fails after 3 s: INELIGIBLE_TRANSACTION"},
			{Value: magicRefundNoBalance.String(), Effect: "refund of so much is PENDING, and fails after 3 s: INSUFFICIENT_BALANCE"},
		},
	}
}

// magicRefusal is how the amounts that refuse a create are answered.
func magicRefusal(amount money.Amount) error {
	switch amount {
	case magicNotActivated:
		return problem(http.StatusForbidden, "CHANNEL_NOT_ACTIVATED", "This channel is not activated for your account")
	case magicUnavailable:
		return problem(http.StatusServiceUnavailable, "CHANNEL_UNAVAILABLE", "The channel is unavailable at the moment")
	case magicServerError:
		return errServer
	}
	return nil
}

// magicRefundRefusal is how the amounts that refuse a refund are answered.
func magicRefundRefusal(amount money.Amount) error {
	switch amount {
	case magicNoPartialRefund:
		return problem(http.StatusBadRequest, "PARTIAL_REFUND_NOT_SUPPORTED", "Partial refund is not supported for this issuer")
	case magicNoRefund:
		return problem(http.StatusBadRequest, "REFUND_NOT_SUPPORTED", "Refund is not supported for this issuer")
	case magicRefundIneligible:
		return errRefundIneligible
	}
	return nil
}
