package snap

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// extra is the additionalInfo of our requests.
type extra struct {
	FundType            string `json:"fundType,omitempty"`
	BeneficiaryBankCode string `json:"beneficiaryBankCode,omitempty"`
	NeedNotify          bool   `json:"needNotify,omitempty"`
}

// holder is what an inquiry answers.
type holder struct {
	name    string
	session string // which the upstream may want to see again in the transfer
	fee     optionalAmount
}

// limits are the bounds of an amount, where the upstream names them. What can't
// be read bounds nothing: the transfer itself is judged by the upstream.
type limits struct {
	Min json.RawMessage `json:"minAmount"`
	Max json.RawMessage `json:"maxAmount"`
}

// refuse says that an amount is outside of the limits, which only those have
// who exist.
func (l limits) refuse(a money.Amount) *sdk.Result {
	var lacks string
	if least := readLimit(l.Min); least > a {
		lacks = "must be at least " + least.String() + ", the provider's minimum for this receiver"
	}
	if most := readLimit(l.Max); most > 0 && most < a {
		lacks = "must be at most " + most.String() + ", the provider's maximum for this receiver"
	}
	if lacks == "" {
		return nil
	}
	refused := wrongField("amount", lacks)
	refused.Blame = sdk.BlameUpstream
	return &refused
}

func readLimit(raw json.RawMessage) money.Amount {
	var limit optionalAmount
	if len(raw) == 0 || json.Unmarshal(raw, &limit) != nil {
		return 0
	}
	return limit.Amount
}

// unclear is the answer to an inquiry that can't be used.
func unclear(detail string) *sdk.Result {
	r := sdk.DontKnow(sdk.BlameUpstream, detail)
	return &r
}

// askWallet asks who has a wallet number (service 37).
func (acc *account) askWallet(ctx context.Context, reference, number string, a money.Amount) (holder, *sdk.Result) {
	type request struct {
		PartnerReferenceNo string `json:"partnerReferenceNo"`
		CustomerNumber     string `json:"customerNumber"`
		Amount             sum    `json:"amount"`
		TransactionDate    string `json:"transactionDate"`
		AdditionalInfo     extra  `json:"additionalInfo,omitzero"`
	}
	var answer struct {
		CustomerNumber text           `json:"customerNumber"`
		CustomerName   text           `json:"customerName"`
		SessionID      text           `json:"sessionId"`
		Amount         optionalAmount `json:"amount"`
		FeeAmount      optionalAmount `json:"feeAmount"`
		limits
	}
	p := acc.client.ask(ctx, question{
		service: walletInquiry,
		body: request{
			reference, number, sumOf(a), timestamp(acc.client.now()), extra{FundType: acc.fundTypes.wallet},
		},
		into: &answer,
	})
	if p != nil {
		r := p.result()
		return holder{}, &r
	}
	switch {
	case answer.CustomerName == "":
		return holder{}, unclear("the inquiry tells no customerName")
	case isAnother(answer.CustomerNumber, number), answer.Amount.isNot(a):
		return holder{}, unclear("the inquiry tells another customerNumber or amount than was asked for")
	}
	return holder{string(answer.CustomerName), string(answer.SessionID), answer.FeeAmount}, answer.refuse(a)
}

// askBank asks who has a bank account (service 42).
func (acc *account) askBank(ctx context.Context, reference string, to beneficiary, a money.Amount) (holder, *sdk.Result) {
	type request struct {
		PartnerReferenceNo       string `json:"partnerReferenceNo"`
		CustomerNumber           string `json:"customerNumber"`
		BeneficiaryAccountNumber string `json:"beneficiaryAccountNumber"`
		Amount                   sum    `json:"amount"`
		AdditionalInfo           extra  `json:"additionalInfo"`
	}
	var answer struct {
		Account        text            `json:"beneficiaryAccountNumber"`
		Name           text            `json:"beneficiaryAccountName"`
		SessionID      text            `json:"sessionId"`
		Amount         optionalAmount  `json:"amount"`
		FeeAmount      optionalAmount  `json:"feeAmount"`
		AdditionalInfo json.RawMessage `json:"additionalInfo"`
		limits
	}
	p := acc.client.ask(ctx, question{
		service: bankInquiry,
		body: request{
			reference, acc.customerNumber, to.account, sumOf(a),
			extra{FundType: acc.fundTypes.bank, BeneficiaryBankCode: to.bank.clearingCode()},
		},
		into: &answer,
	})
	if p != nil {
		r := p.result()
		return holder{}, &r
	}
	fee, err := readFee(answer.AdditionalInfo)
	switch {
	case answer.Name == "":
		return holder{}, unclear("the inquiry tells no beneficiaryAccountName")
	case isAnother(answer.Account, to.account), answer.Amount.isNot(a):
		return holder{}, unclear("the inquiry tells another account or amount than was asked for")
	case err != nil:
		return holder{}, unclear("the inquiry's feeAmount can't be read: " + err.Error())
	}
	if answer.FeeAmount.is {
		fee = answer.FeeAmount
	}
	return holder{string(answer.Name), string(answer.SessionID), fee}, answer.refuse(a)
}

// readFee reads the fee in additionalInfo, which may be of any form or missing.
func readFee(additionalInfo json.RawMessage) (optionalAmount, error) {
	var members struct {
		FeeAmount json.RawMessage `json:"feeAmount"`
	}
	if json.Unmarshal(additionalInfo, &members) != nil || len(members.FeeAmount) == 0 {
		return optionalAmount{}, nil //nolint:nilerr // what has another form names no fee
	}
	var fee optionalAmount
	err := json.Unmarshal(members.FeeAmount, &fee)
	return fee, err
}

// walletInquiry answers /wallet1/inquiry.
func (a *adapter) walletInquiry(ctx context.Context, call sdk.Call) sdk.Result {
	acc, err := a.account(call.Connection)
	if err != nil {
		return sdk.DidNotSend(sdk.BlameAccount, err.Error())
	}
	var body walletBody
	if err := json.Unmarshal(call.Body, &body); err != nil {
		return sdk.DidNotSend(sdk.BlameNone, "read the request: "+err.Error())
	}
	number, ok := phone(body.Phone)
	if !ok {
		return wrongPhone()
	}
	found, why := acc.askWallet(ctx, a.inquiryReference(call.Reference), number, body.Amount)
	if why != nil {
		return *why
	}
	type answer struct {
		FullName string `json:"fullName"`
		Phone    string `json:"phone"`
	}
	return sdk.Finished("", answer{found.name, number})
}

// bankInquiry answers /transfer/inquiry.
func (a *adapter) bankInquiry(ctx context.Context, call sdk.Call) sdk.Result {
	acc, err := a.account(call.Connection)
	if err != nil {
		return sdk.DidNotSend(sdk.BlameAccount, err.Error())
	}
	var body bankBody
	if err := json.Unmarshal(call.Body, &body); err != nil {
		return sdk.DidNotSend(sdk.BlameNone, "read the request: "+err.Error())
	}
	to, why := a.beneficiary(body.BankCode, body.AccountNo)
	if why != nil {
		return *why
	}
	found, why := acc.askBank(ctx, a.inquiryReference(call.Reference), to, body.Amount)
	if why != nil {
		return *why
	}
	type answer struct {
		AccountName string `json:"accountName"`
		AccountNo   string `json:"accountNo"`
		BankCode    string `json:"bankCode"`
		BankName    string `json:"bankName"`
	}
	return sdk.Finished("", answer{found.name, to.account, to.bank.Value, to.bank.Label})
}

// inquiryReference names an inquiry to the upstream, where it has no name yet.
func (a *adapter) inquiryReference(given string) string {
	return cmp.Or(given, newExternalID(a.now()))
}
