package snap

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// verdict is what an outcome comes to.
type verdict struct {
	outcome sdk.Outcome
	blame   sdk.Blame
	code    sdk.RefusalCode
	field   string
	errored bool // it says that the call is over
}

// whom stands for the field that names the receiver.
const whom = "whom"

// The verdicts of the standard's codes on a transfer.
var (
	done        = verdict{outcome: sdk.Done}
	accepted    = verdict{outcome: sdk.Pending}
	declined    = verdict{outcome: sdk.Refused, code: sdk.RefuseOther}
	noReceiver  = verdict{outcome: sdk.Refused, code: sdk.RefuseDestination, field: whom}
	noBank      = verdict{outcome: sdk.Refused, code: sdk.RefuseDestination, field: "bank_code"}
	wrongAmount = verdict{outcome: sdk.Refused, code: sdk.RefuseOther, field: "amount"}
	ourFault    = verdict{outcome: sdk.NotSent, blame: sdk.BlameAccount}
	tooMany     = verdict{outcome: sdk.NotSent, blame: sdk.BlameLimit}
	nobodyKnows = verdict{outcome: sdk.Unknown}
	theirFault  = verdict{outcome: sdk.Unknown, blame: sdk.BlameUpstream}
	theirError  = verdict{outcome: sdk.Unknown, blame: sdk.BlameUpstream, errored: true}
)

// allCodes are HTTP status and case.
var allCodes = map[string]verdict{
	"20000": done, "20200": accepted,
	"40000": declined, "40001": declined, "40002": declined,
	"40100": ourFault, "40101": ourFault, "40102": ourFault, "40103": ourFault, "40104": ourFault,
	"40300": declined, "40301": ourFault, "40302": wrongAmount, "40303": declined, "40304": declined, "40305": noReceiver,
	"40306": declined, "40307": noReceiver, "40308": noReceiver, "40309": noReceiver, "40310": ourFault, "40311": ourFault,
	"40312": ourFault, "40313": nobodyKnows, "40314": declined, "40315": declined, "40316": nobodyKnows, "40317": ourFault,
	"40318": noReceiver, "40319": ourFault, "40320": declined, "40321": ourFault, "40322": ourFault, "40323": declined,
	"40400": nobodyKnows, "40401": nobodyKnows, "40402": declined, "40403": noBank, "40404": declined, "40405": ourFault,
	"40406": ourFault, "40407": ourFault, "40408": ourFault, "40409": noReceiver, "40410": ourFault, "40411": noReceiver,
	"40412": noReceiver, "40413": wrongAmount, "40414": nobodyKnows, "40415": ourFault, "40416": ourFault, "40417": ourFault,
	"40418": nobodyKnows, "40419": noReceiver,
	"40500": ourFault, "40501": ourFault,
	"40900": nobodyKnows, "40901": nobodyKnows,
	"42900": tooMany,
	"50000": theirError, "50001": theirError, "50002": theirError, "50400": theirFault,
	// Not of the standard: what it might add proves nothing, but for 401 and 429.
	"20001": theirFault, "20201": theirFault, "30000": theirFault, "40003": theirFault, "40324": theirFault, "40420": theirFault,
	"40502": theirFault, "40902": theirFault, "50003": theirFault, "50300": theirFault, "50401": theirFault,
	"40105": ourFault, "42901": tooMany,
}

func TestTheTableHasEveryCodeOfTheStandard(t *testing.T) {
	t.Parallel()
	cases := map[int]int{200: 1, 202: 1, 400: 3, 401: 5, 403: 24, 404: 20, 405: 2, 409: 2, 429: 1, 500: 3, 504: 1}
	for status, count := range cases {
		for i := range count {
			code := fmt.Sprintf("%d%02d", status, i)
			if _, tested := allCodes[code]; !tested || reasons[code].class == unlisted && status < 500 {
				t.Errorf("%s is not tested, or not known", code)
			}
		}
	}
}

func checkResult(t *testing.T, name string, r sdk.Result, want verdict, whose string) {
	t.Helper()
	if want.field == whom {
		want.field = whose
	}
	got := verdict{outcome: r.Outcome, blame: r.Blame, code: r.Refusal.Code, errored: r.Errored}
	if len(r.Refusal.Fields) > 0 {
		got.field = r.Refusal.Fields[0].Field
	}
	if got != want {
		t.Errorf("%s: %+v, want %+v (%s)", name, got, want, r.Detail)
	}
	if r.Outcome == sdk.Refused && r.Refusal.Message == "" || r.Outcome != sdk.Refused && r.Outcome != sdk.Done && r.Outcome != sdk.Pending && r.Detail == "" {
		t.Errorf("%s: says nothing: %+v", name, r)
	}
}

// Every code, with its own HTTP status and behind a 200, of both transfers.
func TestCodesOfTransfers(t *testing.T) {
	t.Parallel()
	for _, code := range slices.Sorted(maps.Keys(allCodes)) {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			own, err := strconv.Atoi(code[:3])
			if err != nil {
				t.Fatal(err)
			}
			for _, status := range []int{own, 200} {
				if status == 200 && own < 400 && own != 200 && own != 202 {
					continue
				}
				up := newStub(t, map[string][]reply{
					topUpPath:        {coded(status, code[:3]+"38"+code[3:], toppedUp)},
					bankTransferPath: {coded(status, code[:3]+"43"+code[3:], bankIsDone)},
				})
				c := connect(t, up.url)
				a := newAdapter(t)
				checkResult(t, fmt.Sprint("wallet, HTTP ", status), a.sendToWallet(t.Context(), walletCall(c)), allCodes[code], "phone")
				checkResult(t, fmt.Sprint("bank, HTTP ", status), a.sendToBank(t.Context(), bankCall(c)), allCodes[code], "account_no")
				repeats := 1
				if code == "40101" || code == "40103" {
					repeats = 2 // with a new token
				}
				if n := len(up.of(topUpPath)); n != repeats {
					t.Errorf("HTTP %d: sent %d times", status, n)
				}
			}
		})
	}
}

// Of an inquiry the same, but that a wrong amount is the caller's to change,
// and a 202 tells nobody's name.
func TestCodesOfInquiries(t *testing.T) {
	t.Parallel()
	for _, code := range slices.Sorted(maps.Keys(allCodes)) {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			status, err := strconv.Atoi(code[:3])
			if err != nil {
				t.Fatal(err)
			}
			up := newStub(t, map[string][]reply{
				walletInquiryPath: {coded(status, code[:3]+"37"+code[3:], `"customerName":"Budi"`)},
				bankInquiryPath:   {coded(status, code[:3]+"42"+code[3:], `"beneficiaryAccountName":"BUDI"`)},
			})
			c := connect(t, up.url)
			a := newAdapter(t)
			want := allCodes[code]
			switch {
			case want == wrongAmount:
				want.code = sdk.RefuseRequest
			case want == accepted:
				want = nobodyKnows
			}
			if want.outcome == sdk.Refused {
				want.blame = sdk.BlameUpstream // which has answered
			}
			checkResult(t, "wallet", a.walletInquiry(t.Context(), queryCall(c, "/wallet1/inquiry", walletOrder)), want, "phone")
			checkResult(t, "bank", a.bankInquiry(t.Context(), queryCall(c, "/transfer/inquiry", bankOrder)), want, "account_no")
			checkQuoted(t, "wallet quote", a.quoteWallet(t.Context(), quoteOf(c, walletTransfer, walletOrder)), want, "phone")
			checkQuoted(t, "bank quote", a.quoteBank(t.Context(), quoteOf(c, bankTransfer, bankOrder)), want, "account_no")
		})
	}
}

func checkQuoted(t *testing.T, name string, q sdk.Quoted, want verdict, whose string) {
	t.Helper()
	want.errored = false // there is no call that could be over
	checkResult(t, name, sdk.Result{Outcome: q.Outcome, Blame: q.Blame, Refusal: q.Refusal, Detail: q.Detail}, want, whose)
}

// Of a lookup only success, and "no such transaction", say anything.
func TestCodesOfStatus(t *testing.T) {
	t.Parallel()
	for _, code := range slices.Sorted(maps.Keys(allCodes)) {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			status, err := strconv.Atoi(code[:3])
			if err != nil {
				t.Fatal(err)
			}
			up := newStub(t, map[string][]reply{
				topUpStatusPath: {coded(status, code[:3]+"39"+code[3:], stands("00"))},
				bankStatusPath:  {coded(status, code[:3]+"00"+code[3:], stands("00"))},
			})
			want, blame := sdk.StatusUnknown, allCodes[code].blame
			switch code {
			case "20000":
				want = sdk.StatusDone
			case "40401":
				want = sdk.StatusNotFound
			}
			a := newAdapter(t)
			for _, operation := range []string{walletTransfer, bankTransfer} {
				f := a.lookup(t.Context(), lookupOf(connect(t, up.url), operation))
				if f.Status != want || f.Blame != blame {
					t.Errorf("%s: %+v, want status %v, blame %d", operation, f, want, blame)
				}
			}
		})
	}
}

// Nothing of a token's answer is about the transfer, which was not sent.
func TestCodesOfTokens(t *testing.T) {
	t.Parallel()
	for _, code := range slices.Sorted(maps.Keys(allCodes)) {
		if code == "20000" {
			continue
		}
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			status, err := strconv.Atoi(code[:3])
			if err != nil {
				t.Fatal(err)
			}
			up := newStub(t, map[string][]reply{tokenPath: {coded(status, code[:3]+"73"+code[3:], "")}})
			r := newAdapter(t).sendToWallet(t.Context(), walletCall(connect(t, up.url)))
			blame := sdk.BlameAccount
			if want := allCodes[code].blame; want == sdk.BlameUpstream || want == sdk.BlameLimit {
				blame = want
			}
			if code == "20200" {
				blame = sdk.BlameNone
			}
			if r.Outcome != sdk.NotSent || r.Blame != blame || len(up.of(topUpPath)) != 0 {
				t.Errorf("%+v, want not sent, blame %d", r, blame)
			}
		})
	}
}

func TestWhatIsNoCodeProvesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply reply
		want  verdict
	}{
		"a proxy's 404":             {reply{404, "<html>"}, theirFault},
		"a proxy's 403":             {reply{403, "{}"}, theirFault},
		"a proxy's 503":             {reply{503, ""}, theirFault},
		"a redirect":                {reply{302, ""}, theirFault},
		"nothing":                   {reply{200, ""}, theirFault},
		"no JSON":                   {reply{200, `{"responseCode":"2003800"`}, theirFault},
		"another service's success": {coded(200, "2004300", toppedUp), theirFault},
		"another service's no":      {coded(403, "4033714", ""), theirFault},
		"a no behind a 500":         {coded(500, "4033814", ""), theirFault},
		"a success behind a 500":    {coded(500, "2003800", toppedUp), theirFault},
		"a success behind a 202":    {coded(202, "2003800", toppedUp), theirFault},
		"a code of six digits":      {coded(403, "403381", ""), theirFault},
		"a code with a letter":      {coded(403, "40338I4", ""), theirFault},
		"a gateway's 401":           {reply{401, ""}, ourFault},
		"a gateway's coded 401":     {coded(401, "4010000", ""), ourFault},
		"a gateway's 429":           {reply{429, "slow down"}, tooMany},
		"a gateway's coded 429":     {coded(429, "4290000", ""), tooMany},
		"a code as a number":        {reply{403, `{"responseCode":4033814}`}, declined},
	} {
		up := newStub(t, map[string][]reply{topUpPath: {c.reply}})
		checkResult(t, name, newAdapter(t).sendToWallet(t.Context(), walletCall(connect(t, up.url))), c.want, "phone")
	}
}

// 400 names a field: the merchant's, or one of ours, which is our account's
// fault.
func TestBadFields(t *testing.T) {
	t.Parallel()
	said := func(code, message string) reply {
		return reply{400, `{"responseCode":"` + code + `","responseMessage":"` + message + `"}`}
	}
	for message, want := range map[string]struct{ wallet, bank verdict }{
		"Invalid Field Format amount.value":             {wrongAmount, wrongAmount},
		"Invalid Mandatory Field customerNumber":        {noReceiver, ourFault},
		"Invalid Field Format beneficiaryAccountNumber": {noReceiver, noReceiver},
		"Invalid Field Format beneficiaryBankCode":      {noBank, noBank},
		"Invalid Field Format feeAmount.value":          {ourFault, ourFault},
		"Invalid Mandatory Field CHANNEL-ID":            {ourFault, ourFault},
		"Invalid Field Format X-TIMESTAMP":              {ourFault, ourFault},
		"Invalid Field Format additionalInfo.fundType":  {ourFault, ourFault},
		"Invalid Field Format notes":                    {verdict{outcome: sdk.Refused, code: sdk.RefuseOther, field: "message"}, verdict{outcome: sdk.Refused, code: sdk.RefuseOther, field: "message"}},
		"Invalid Field Format somethingElse":            {declined, declined},
		"Bad Request":                                   {declined, declined},
	} {
		up := newStub(t, map[string][]reply{
			topUpPath: {said("4003801", message)}, bankTransferPath: {said("4004301", message)},
		})
		c := connect(t, up.url)
		a := newAdapter(t)
		checkResult(t, "wallet: "+message, a.sendToWallet(t.Context(), walletCall(c)), want.wallet, "phone")
		checkResult(t, "bank: "+message, a.sendToBank(t.Context(), bankCall(c)), want.bank, "account_no")
	}
}
