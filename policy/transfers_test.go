package policy

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// transfers is data with a tier that bounds money out, and one that does not.
const transfers = `{
	"tiers": {"starter": {"rate_per_second": 1, "burst": 1}, "growth": {"rate_per_second": 1, "burst": 1}},
	"transfers": {
		"tiers": {"growth": {"day": {"amount": 9223372036854775807, "count": 3}, "destination_day": {"amount": 5000}}}
	}
}`

func TestTransfersAreBounded(t *testing.T) {
	t.Parallel()
	set := must(t, with(dataFile, transfers))
	for merchant, want := range map[[2]string]Limits{
		{"m1", "starter"}: {RepeatWithin: DefaultRepeat},
		{"m2", "growth"}: {RepeatWithin: DefaultRepeat, Transfers: TransferLimits{
			Day: Outflow{Amount: new(int64(9223372036854775807)), Count: new(int64(3))}, DestinationDay: Outflow{Amount: new(int64(5000))},
		}},
		{"m9", "growth"}: {RepeatWithin: 90 * time.Minute, Transfers: TransferLimits{
			Day: Outflow{Amount: new(int64(9223372036854775807)), Count: new(int64(0))}, DestinationDay: Outflow{Amount: new(int64(5000))},
		}},
	} {
		var own []OwnLimit
		if merchant[0] == "m9" {
			own = []OwnLimit{
				{Name: "payout:day", Payout: &Payout{Day: Outflow{Count: new(int64(0))}}},
				{Name: "payout:repeat_within", Payout: &Payout{RepeatWithin: new(90 * time.Minute)}},
				{Name: "ended", Payout: &Payout{DestinationDay: Outflow{Amount: new(int64(1))}}, ExpiresAt: noon},
			}
		}
		in := starter(noon, own...)
		in.Merchant.ID, in.Merchant.Tier = merchant[0], merchant[1]
		got, err := set.Limits(t.Context(), in)
		if err != nil || !reflect.DeepEqual(got.Transfers, want.Transfers) || got.RepeatWithin != want.RepeatWithin {
			t.Errorf("%v: %+v within %s, %v; want %+v within %s", merchant, got.Transfers, got.RepeatWithin, err, want.Transfers, want.RepeatWithin)
		}
	}
}

func TestAWrongBoundOfTransfersIsNoSet(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`"transfers": 5`:                                   `"transfers": an object must be here`,
		`"transfers": {"month": {}}`:                       `"transfers": "month": is not known here`,
		`"transfers": {5: {}}`:                             `"transfers": 5: is not known here`,
		`"transfers": {"day": 5}`:                          `"transfers": "day": an object must be here`,
		`"transfers": {"day": {"amounts": 5}}`:             `"day": "amounts": is not known here`,
		`"transfers": {"day": {"amount": -1}}`:             `"day": "amount": must be a whole number`,
		`"transfers": {"destination_day": {"count": 1.5}}`: `"destination_day": "count": must be a whole number`,
		`"transfers": {"day": {"count": "5"}}`:             `"day": "count": must be a whole number`,
		`"repeat_within": 5`:                               `"repeat_within" must be a duration`,
		`"repeat_within": ""`:                              `"repeat_within" must be a duration`,
		`"repeat_within": "-1s"`:                           `"repeat_within" must be a duration`,
		`"repeat_within": "24h1s"`:                         `"repeat_within" must be a duration`,
	} {
		rules := fmt.Sprintf("package gerbang\n\nlimits := {\"rates\": [], \"quotas\": [], %s}\n\nadmit := {\"allow\": true, \"reasons\": []}\n", answer)
		got := problems(t, rulesOnly(rules))
		if got[0].File != "own.rego" || got[0].Line != 3 || !strings.Contains(got[0].Message, want) {
			t.Errorf("%s: problems are %v, want %s", answer, got, want)
		}
	}
}
