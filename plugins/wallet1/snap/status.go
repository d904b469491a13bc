package snap

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

// The upstream's words for how a transaction stands.
const (
	statusSuccess   = "00"
	statusInitiated = "01"
	statusPaying    = "02"
	statusPending   = "03"
	statusRefunded  = "04"
	statusCancelled = "05"
	statusFailed    = "06"
	statusNotFound  = "07"
)

// statuses maps latestTransactionStatus to a status. Refunded money is back, so the
// transfer failed; where it was done before, that is a reversal.
var statuses = map[string]sdk.Status{
	statusSuccess:   sdk.StatusDone,
	statusInitiated: sdk.StatusPending,
	statusPaying:    sdk.StatusPending,
	statusPending:   sdk.StatusPending,
	statusRefunded:  sdk.StatusFailed,
	statusCancelled: sdk.StatusFailed,
	statusFailed:    sdk.StatusFailed,
	statusNotFound:  sdk.StatusNotFound,
}

// fact is what the upstream says of one transfer, in a status or a
// notification.
type fact struct {
	PartnerReferenceNo text           `json:"originalPartnerReferenceNo"`
	ReferenceNo        text           `json:"originalReferenceNo"`
	Status             text           `json:"latestTransactionStatus"`
	Amount             optionalAmount `json:"amount"`
	FinishedTime       upstream.Time  `json:"finishedTime"`
	TransactionDate    upstream.Time  `json:"transactionDate"`
}

// statusUpdate is what a fact says of the movement. Its event id is made of
// what every message about the fact has, so a fact keeps its id however it arrives.
func (f fact) statusUpdate() sdk.StatusUpdate {
	status, known := statuses[string(f.Status)]
	switch {
	case !known:
		return sdk.NoStatus(sdk.BlameUpstream, "the upstream tells no known latestTransactionStatus")
	case status == sdk.StatusNotFound:
		return sdk.StatusUpdate{Status: sdk.StatusNotFound, Detail: "latestTransactionStatus 07"}
	}
	found := sdk.StatusUpdate{
		Reference:         string(f.PartnerReferenceNo),
		ProviderReference: string(f.ReferenceNo),
		Status:            status,
		Amount:            f.Amount.Amount,
		Currency:          cmp.Or(f.Amount.currency, rupiah),
	}
	if status != sdk.StatusPending {
		found.EventID = found.Reference + "-" + string(f.Status)
		found.At = f.FinishedTime.Time
		if found.At.IsZero() {
			found.At = f.TransactionDate.Time
		}
	}
	if data, err := json.Marshal(sent{found.ProviderReference}); err == nil {
		found.Data = data
	}
	return found
}

// asked names the transfer of a status request.
type asked struct {
	service           service
	reference         string
	providerReference string
	amount            money.Amount // 0 where it is not known
}

// status asks for the status of a transfer (services 39, and 00 or 36).
func (acc *account) status(ctx context.Context, about asked) sdk.StatusUpdate {
	type request struct {
		PartnerReferenceNo string `json:"originalPartnerReferenceNo"`
		ReferenceNo        string `json:"originalReferenceNo,omitempty"`
		ServiceCode        string `json:"serviceCode"`
	}
	body := request{PartnerReferenceNo: about.reference, ReferenceNo: about.providerReference, ServiceCode: about.service.original()}
	var answer fact
	if p := acc.client.ask(ctx, question{service: about.service, body: body, into: &answer}); p != nil {
		return p.statusUpdate()
	}
	if answer.PartnerReferenceNo == "" {
		answer.PartnerReferenceNo = text(about.reference) // what was asked for is what is answered
	}
	if string(answer.PartnerReferenceNo) != about.reference {
		return sdk.NoStatus(sdk.BlameUpstream, "the status is of another originalPartnerReferenceNo")
	}
	answer.ReferenceNo = cmp.Or(answer.ReferenceNo, text(about.providerReference))
	if !answer.Amount.is {
		// Not every issuer names it. The reference is ours, and moves this amount.
		answer.Amount.Amount = about.amount
	}
	return answer.statusUpdate()
}

// original is the service code of the transfer that a status service is about.
func (s service) original() string {
	switch s {
	case topUpStatus:
		return topUp.code
	case transferStatus:
		return transferBank.code
	}
	return bankStatus.code
}

// statusUpdate is what a lookup says of the problem. Only the upstream's own word
// that it has nothing counts as not found.
func (p *problem) statusUpdate() sdk.StatusUpdate {
	if p.class == missing {
		return sdk.StatusUpdate{Status: sdk.StatusNotFound, Detail: p.detail}
	}
	return sdk.NoStatus(p.blame, p.detail)
}

func (a *adapter) lookup(ctx context.Context, l sdk.Lookup) sdk.StatusUpdate {
	acc, err := a.account(l.Connection)
	if err != nil {
		return sdk.NoStatus(sdk.BlameAccount, err.Error())
	}
	about := asked{topUpStatus, l.Reference, l.ProviderReference, l.Amount}
	switch l.Operation {
	case walletTransfer:
	case bankTransfer:
		about.service = acc.bankStatus
	default:
		return sdk.NoStatus(sdk.BlameNone, "this plugin moves no money by "+l.Operation)
	}
	return acc.status(ctx, about)
}
