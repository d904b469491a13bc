package sandbox

import (
	"context"
	"regexp"
	"slices"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

var (
	phoneForm   = regexp.MustCompile(`^628\d{8,11}$`)
	accountForm = regexp.MustCompile(`^\d{5,34}$`)
	bankForm    = regexp.MustCompile(`^\d{3}$`)
)

// What DANA's paths want to know about the money.
const (
	fundTopup = "AGENT_TOPUP_FOR_USER_SETTLE"
	fundBank  = "MERCHANT_WITHDRAW_FOR_CORPORATE"
)

// fund checks the fund type, where the dialect wants one.
func (c *call) fund(info *form, right string) {
	if c.dana {
		info.oneOf("fundType", right)
	}
}

// inquireWallet is service 37: who is behind a phone number.
func (s *Simulator) inquireWallet(ctx context.Context, c *call) (result, fields, error) {
	f := c.form
	reference := f.text("partnerReferenceNo", 64, false)
	phone := f.matching("customerNumber", phoneForm)
	amount := f.amount("amount", 1)
	f.moment("transactionDate", s.now())
	c.fund(f.object("additionalInfo", c.dana), fundTopup)
	if err := f.err(); err != nil {
		return "", nil, err
	}
	switch p := inputOf(phones, phone).inquiry; {
	case p == planTimeout:
		s.hang(ctx)
		return "", nil, refuse(resultTimeout)
	case p != "":
		return "", nil, p.refusal(phone)
	}
	if err := s.bounds(amount, s.options.MaxTopup); err != nil {
		return "", nil, err
	}
	s.mu.Lock()
	session, fee := c.wallet.session(phone, amount), s.fees.Wallet
	s.mu.Unlock()
	return resultOK, fields{
		"referenceNo": newID(), "partnerReferenceNo": reference, "sessionId": session,
		"customerNumber": phone, "customerName": nameOfPhone(phone), "customerMonthlyInLimit": s.options.MaxTopup.Decimal2(),
		"minAmount": rupiah(s.options.MinAmount), "maxAmount": rupiah(s.options.MaxTopup),
		"amount": rupiah(amount), "feeAmount": rupiah(fee), "feeType": "OUR",
	}, nil
}

// inquireBank is service 42: who is behind an account at a bank.
func (s *Simulator) inquireBank(ctx context.Context, c *call) (result, fields, error) {
	f := c.form
	reference := f.text("partnerReferenceNo", 64, false)
	payer := f.matching("customerNumber", phoneForm)
	number := f.matching("beneficiaryAccountNumber", accountForm)
	amount := f.amount("amount", 1)
	info := f.object("additionalInfo", true)
	code := info.matching("beneficiaryBankCode", bankForm)
	c.fund(info, fundBank)
	if err := f.err(); err != nil {
		return "", nil, err
	}
	if err := s.checkBank(c, payer, code); err != nil {
		return "", nil, err
	}
	switch p := inputOf(accounts, number).inquiry; {
	case amount == magicShortBank:
		return "", nil, refuse(resultFunds)
	case p == planTimeout:
		s.hang(ctx)
		return "", nil, refuse(resultTimeout)
	case p != "":
		return "", nil, p.refusal(number)
	}
	s.mu.Lock()
	session, fee, left := c.wallet.session(code+"/"+number, amount), s.fees.Bank, c.wallet.balance
	s.mu.Unlock()
	if amount+fee > left {
		return "", nil, refuse(resultFunds)
	}
	if err := s.bounds(amount, s.options.MaxBank); err != nil {
		return "", nil, err
	}
	bank := bankOf(code)
	return resultOK, fields{
		"referenceNo": newID(), "partnerReferenceNo": reference, "sessionId": session,
		"beneficiaryAccountNumber": number, "beneficiaryAccountName": nameOfAccount(number),
		"beneficiaryBankCode": code, "beneficiaryBankShortName": bank, "beneficiaryBankName": "Bank " + bank,
		"amount": rupiah(amount), "additionalInfo": fields{"feeAmount": rupiah(fee)},
	}, nil
}

// checkBank refuses another payer than the account's owner, and no banks.
func (s *Simulator) checkBank(c *call, payer, code string) error {
	s.mu.Lock()
	own := c.wallet.CustomerNumber
	s.mu.Unlock()
	switch {
	case payer != own:
		return refuse(resultNotPermitted)
	case slices.Contains(noBanks, code):
		return refuse(resultBankUnknown)
	default:
		return nil
	}
}

func (s *Simulator) bounds(amount, most money.Amount) error {
	switch {
	case amount < s.options.MinAmount:
		return refuse(resultAmount)
	case amount > most:
		return refuse(resultLimit)
	default:
		return nil
	}
}

// hang waits longer than callers do.
func (s *Simulator) hang(ctx context.Context) {
	select {
	case <-s.env.Clock.Reach(s.env.Clock.Now().Add(s.options.Hang)):
	case <-ctx.Done():
	}
}

// session ties a transfer to its inquiry; the simulator's lock is held.
func (w *wallet) session(to string, amount money.Amount) string {
	return w.seal("session", to, amount.String())[:32]
}

// Holders are made up from the last digits.
func nameOfPhone(phone string) string     { return "Pelanggan Contoh " + phone[len(phone)-4:] }
func nameOfAccount(account string) string { return "Nasabah Contoh " + account[len(account)-4:] }

// noBanks are codes that look like a bank's and are none.
var noBanks = []string{"000", "001", "088", "089", "145", "422", "520", "559", "600", "777", "867", "950", "987", "999"}

// bankNames are the well-known ones.
var bankNames = map[string]string{
	"002": "BRI", "008": "Mandiri", "009": "BNI", "011": "Danamon", "013": "Permata", "014": "BCA", "016": "Maybank",
	"019": "Panin", "022": "CIMB Niaga", "028": "OCBC", "110": "BJB", "111": "DKI", "147": "Muamalat", "200": "BTN",
	"213": "SMBC", "426": "Mega", "441": "KB Bukopin", "451": "BSI", "490": "Neo Commerce", "501": "BCA Digital",
	"535": "SeaBank", "542": "Jago", "562": "Superbank", "567": "Allo",
}

func bankOf(code string) string {
	if name, ok := bankNames[code]; ok {
		return name
	}
	return code
}
