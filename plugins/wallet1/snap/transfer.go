package snap

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// walletBody is the body of a transfer to a wallet, or of its inquiry.
type walletBody struct {
	Phone   string       `json:"phone"`
	Amount  money.Amount `json:"amount"`
	Message string       `json:"message"`
}

// bankBody is the body of a transfer to a bank, or of its inquiry. The message
// is not here: the service has no field for it.
type bankBody struct {
	BankCode  string       `json:"bank_code"`
	AccountNo string       `json:"account_no"`
	Amount    money.Amount `json:"amount"`
}

// agreed is what a quote leaves for its transfer.
type agreed struct {
	Phone   string       `json:"phone,omitempty"`   // of a wallet, 628…
	Bank    string       `json:"bank,omitempty"`    // of a bank account: three digits
	Account string       `json:"account,omitempty"` // likewise
	Name    string       `json:"name"`              // as the upstream named it
	Session string       `json:"session,omitempty"`
	Fee     money.Amount `json:"fee,omitzero"` // as the upstream named it
}

// destination names the receiver in one form, however the caller writes it.
func (a agreed) destination() string {
	if a.Phone != "" {
		return "phone/" + a.Phone
	}
	return "bank/" + a.Bank + "/" + a.Account
}

func (a *adapter) quoteWallet(ctx context.Context, q sdk.Quote) sdk.Quoted {
	acc, err := a.account(q.Connection)
	if err != nil {
		return sdk.NoQuote(sdk.DidNotSend(sdk.BlameAccount, err.Error()))
	}
	var body walletBody
	if err := json.Unmarshal(q.Body, &body); err != nil {
		return sdk.NoQuote(sdk.DidNotSend(sdk.BlameNone, "read the request: "+err.Error()))
	}
	number, ok := phone(body.Phone)
	if !ok {
		return sdk.NoQuote(wrongPhone())
	}
	found, why := acc.askWallet(ctx, a.inquiryReference(q.Reference), number, body.Amount)
	if why != nil {
		return sdk.NoQuote(*why)
	}
	return found.quoted(body.Amount, acc.fees.wallet, agreed{Phone: number})
}

func (a *adapter) quoteBank(ctx context.Context, q sdk.Quote) sdk.Quoted {
	acc, err := a.account(q.Connection)
	if err != nil {
		return sdk.NoQuote(sdk.DidNotSend(sdk.BlameAccount, err.Error()))
	}
	var body bankBody
	if err := json.Unmarshal(q.Body, &body); err != nil {
		return sdk.NoQuote(sdk.DidNotSend(sdk.BlameNone, "read the request: "+err.Error()))
	}
	to, why := a.beneficiary(body.BankCode, body.AccountNo)
	if why != nil {
		return sdk.NoQuote(*why)
	}
	found, why := acc.askBank(ctx, a.inquiryReference(q.Reference), to, body.Amount)
	if why != nil {
		return sdk.NoQuote(*why)
	}
	return found.quoted(body.Amount, acc.fees.bank, agreed{Bank: to.bank.clearingCode(), Account: to.account})
}

// quoted is the quote of a transfer: the fee that the merchant is shown, and the
// cost with the upstream's own fee, where the upstream names one.
func (h holder) quoted(a, fee money.Amount, about agreed) sdk.Quoted {
	about.Name, about.Session, about.Fee = h.name, h.session, h.fee.Amount
	q := sdk.Quoted{Outcome: sdk.Done, Price: a, Fee: fee, Name: h.name, Destination: about.destination()}
	if h.fee.is {
		cost, err := a.Add(h.fee.Amount)
		if err != nil {
			return sdk.NoQuote(sdk.DontKnow(sdk.BlameUpstream, "the upstream's fee "+err.Error()))
		}
		q.Cost = cost
	}
	var err error
	if q.Data, err = json.Marshal(about); err != nil {
		return sdk.NoQuote(sdk.DidNotSend(sdk.BlameNone, "encode the quote: "+err.Error()))
	}
	return q
}

func readAgreed(quote json.RawMessage) (agreed, error) {
	var about agreed
	if err := json.Unmarshal(quote, &about); err != nil {
		return agreed{}, errors.New("the call comes without its quote")
	}
	return about, nil
}

// prepare reads what a transfer needs. A quote about another receiver than the
// request's is none.
func (a *adapter) prepare(call sdk.Call, into any, same func(agreed) bool) (*account, agreed, *sdk.Result) {
	acc, err := a.account(call.Connection)
	if err != nil {
		r := sdk.DidNotSend(sdk.BlameAccount, err.Error())
		return nil, agreed{}, &r
	}
	about, err := readAgreed(call.Quote)
	if err == nil {
		err = json.Unmarshal(call.Body, into)
	}
	if err == nil && !same(about) {
		err = errors.New("the quote is for another receiver")
	}
	if err != nil {
		r := sdk.DidNotSend(sdk.BlameNone, err.Error())
		return nil, agreed{}, &r
	}
	return acc, about, nil
}

// sendToWallet answers /wallet1/transfer/wallet (service 38).
func (a *adapter) sendToWallet(ctx context.Context, call sdk.Call) sdk.Result {
	var body walletBody
	acc, about, why := a.prepare(call, &body, func(about agreed) bool {
		number, ok := phone(body.Phone)
		return ok && number == about.Phone
	})
	if why != nil {
		return *why
	}
	type request struct {
		PartnerReferenceNo string `json:"partnerReferenceNo"`
		CustomerNumber     string `json:"customerNumber"`
		CustomerName       string `json:"customerName,omitempty"`
		Amount             sum    `json:"amount"`
		FeeAmount          sum    `json:"feeAmount,omitzero"`
		TransactionDate    string `json:"transactionDate"`
		SessionID          string `json:"sessionId,omitempty"`
		Notes              string `json:"notes,omitempty"`
		AdditionalInfo     extra  `json:"additionalInfo,omitzero"`
	}
	r := request{
		PartnerReferenceNo: call.Reference, CustomerNumber: about.Phone, CustomerName: about.Name,
		Amount: sumOf(call.Amount), TransactionDate: timestamp(a.now()), SessionID: about.Session,
		Notes: notes(body.Message), AdditionalInfo: extra{FundType: acc.fundTypes.wallet},
	}
	if about.Fee > 0 || acc.namesFee {
		r.FeeAmount = sumOf(about.Fee)
	}
	return acc.transfer(ctx, call, about.Phone, question{service: topUp, body: r})
}

// sendToBank answers /wallet1/transfer/bank (service 43).
func (a *adapter) sendToBank(ctx context.Context, call sdk.Call) sdk.Result {
	var body bankBody
	acc, about, why := a.prepare(call, &body, func(about agreed) bool {
		to, why := a.beneficiary(body.BankCode, body.AccountNo)
		return why == nil && to.account == about.Account && to.bank.clearingCode() == about.Bank
	})
	if why != nil {
		return *why
	}
	type request struct {
		PartnerReferenceNo       string `json:"partnerReferenceNo"`
		CustomerNumber           string `json:"customerNumber"`
		BeneficiaryAccountNumber string `json:"beneficiaryAccountNumber"`
		BeneficiaryBankCode      string `json:"beneficiaryBankCode"`
		Amount                   sum    `json:"amount"`
		SessionID                string `json:"sessionId,omitempty"`
		AdditionalInfo           extra  `json:"additionalInfo"`
	}
	return acc.transfer(ctx, call, about.Account, question{service: transferBank, body: request{
		call.Reference, acc.customerNumber, about.Account, about.Bank, sumOf(call.Amount), about.Session,
		extra{FundType: acc.fundTypes.bank, NeedNotify: true},
	}})
}

// sent is the data of a transfer, in results and status updates.
type sent struct {
	ReferenceNo string `json:"referenceNo,omitempty"`
}

// transfer moves the money, under the gateway's reference, and judges the
// answer. A success that is not about what was asked for proves nothing: a
// lookup will find out.
func (acc *account) transfer(ctx context.Context, call sdk.Call, receiver string, q question) sdk.Result {
	var answer struct {
		ReferenceNo        text           `json:"referenceNo"`
		PartnerReferenceNo text           `json:"partnerReferenceNo"`
		CustomerNumber     text           `json:"customerNumber"` // of a bank transfer the payer's
		Account            text           `json:"beneficiaryAccountNumber"`
		Amount             optionalAmount `json:"amount"`
	}
	q.sendBy, q.into = call.SendBy, &answer
	p := acc.client.ask(ctx, q)
	if p != nil && p.class != underway {
		return p.result()
	}
	about := answer.Account
	if q.service == topUp {
		about = answer.CustomerNumber
	}
	switch {
	case answer.PartnerReferenceNo != "" && string(answer.PartnerReferenceNo) != call.Reference:
		return sdk.DontKnow(sdk.BlameUpstream, "the answer is about another partnerReferenceNo")
	case answer.Amount.isNot(call.Amount), isAnother(about, receiver):
		return sdk.DontKnow(sdk.BlameUpstream, "the answer is about another amount or receiver")
	case p != nil:
		return sdk.Accepted(string(answer.ReferenceNo), time.Time{}, sent{string(answer.ReferenceNo)})
	case answer.ReferenceNo == "":
		return sdk.DontKnow(sdk.BlameUpstream, "the answer of a success has no referenceNo")
	}
	r := sdk.Finished(string(answer.ReferenceNo), sent{string(answer.ReferenceNo)})
	r.Amount = answer.Amount.Amount
	return r
}

const maxNotes = 255

// notes is a message as the upstream takes it.
func notes(message string) string {
	message = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, message))
	if runes := []rune(message); len(runes) > maxNotes {
		message = string(runes[:maxNotes])
	}
	return message
}
