package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// ownRate is the name of the rate that a policy asks unless it has others.
const ownRate = "default"

type merchantLimit struct {
	Merchant          string           `arg:"" help:"The merchant's id."`
	Quota             map[string]int64 `placeholder:"NAME=CALLS" help:"Calls of a quota in a month; 0 allows none. May be repeated."`
	Rate              string           `placeholder:"N/s" help:"Requests a second, minute or hour: 5/s, 30/m, 100/h."`
	Burst             int64            `help:"Requests at once after a pause."`
	Markup            *int64           `placeholder:"RUPIAH" help:"What is added to every price, whatever the product."`
	DayAmount         *int64           `placeholder:"RUPIAH" help:"What may go out by transfers in a day; 0 allows none."`
	DayCount          *int64           `placeholder:"N" help:"How many transfers may go out in a day."`
	DestinationAmount *int64           `placeholder:"RUPIAH" help:"What may go out to one destination in a day."`
	DestinationCount  *int64           `placeholder:"N" help:"How many transfers may go out to one destination in a day."`
	RepeatWithin      *time.Duration   `placeholder:"10m" help:"For how long a transfer without a reference is refused that equals an earlier one; 0s for never."`

	For    *time.Duration `placeholder:"2h" help:"How long the limits hold; for ever unless given."`
	Remove string         `placeholder:"NAME" help:"Remove a limit of its own: the name of a quota, default for the rate, or what the list calls it."`
	Reason string         `help:"Why; required for a change and kept in the audit."`
	dryRun
}

// Run changes the limits, where a change is asked for, and shows those that the
// merchant then has.
func (c *merchantLimit) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	change, err := c.change()
	if err != nil {
		return err
	}
	if c.DryRun {
		return c.try(ctx, p, admin, adminapi.MerchantTrial{MerchantID: c.Merchant, Limits: change.Limits, Remove: c.Remove})
	}
	var limits []adminapi.Limit
	switch {
	case c.Remove != "":
		limits, err = adminapi.RemoveLimit.Call(ctx, admin, adminapi.LimitRemoval{Merchant: c.Merchant, Name: c.Remove, Reason: c.Reason})
	case len(change.Limits) > 0:
		limits, err = adminapi.SetLimits.Call(ctx, admin, change)
	default:
		limits, err = adminapi.ListLimits.Call(ctx, admin, adminapi.MerchantID{Merchant: c.Merchant})
	}
	if err != nil {
		return err
	}
	rows := [][]string{{"LIMIT", "RATE", "BURST", "QUOTA", "MONEY", "UNTIL", "SET BY", "REASON"}}
	for _, l := range limits {
		rows = append(rows, limitRow(l))
	}
	return p.show(limits, rows...)
}

// change is what the flags ask for, without limits where nothing shall change.
func (c *merchantLimit) change() (adminapi.LimitChange, error) {
	change := adminapi.LimitChange{Merchant: c.Merchant, Reason: c.Reason}
	if c.For != nil {
		change.For = c.For.String()
	}
	for name, calls := range c.Quota {
		change.Limits = append(change.Limits, adminapi.NewLimit{Name: name, Limit: &calls})
	}
	slices.SortFunc(change.Limits, func(a, b adminapi.NewLimit) int { return strings.Compare(a.Name, b.Name) })
	if c.Rate != "" || c.Burst != 0 {
		rate, err := perSecond(c.Rate)
		if err != nil {
			return change, err
		}
		change.Limits = append(change.Limits, adminapi.NewLimit{Name: ownRate, RatePerSecond: rate, Burst: c.Burst})
	}
	change.Limits = append(change.Limits, c.money()...)
	sets := len(change.Limits) > 0
	switch {
	case c.Remove != "" && (sets || c.For != nil):
		return change, errors.New("--remove goes with --reason alone")
	case !sets && c.For != nil:
		return change, errors.New("--for needs a limit that it bounds, such as --quota, --rate or --markup")
	case c.DryRun && !sets && c.Remove == "":
		return change, errors.New("--dry-run needs a change that it tries")
	case !sets && c.Remove == "" && c.Reason != "":
		return change, errors.New("--reason is for a change, such as --quota, --rate or --remove")
	case !c.DryRun && (sets || c.Remove != "") && c.Reason == "":
		return change, errors.New("--reason must be given: it is kept on the merchant's record and in the audit")
	}
	return change, nil
}

// money is the markup and the payout limits that the flags ask for.
func (c *merchantLimit) money() []adminapi.NewLimit {
	var limits []adminapi.NewLimit
	if c.Markup != nil {
		limits = append(limits, adminapi.NewLimit{Name: adminapi.LimitMarkup, Markup: c.Markup})
	}
	if c.DayAmount != nil || c.DayCount != nil {
		limits = append(limits, adminapi.NewLimit{Name: adminapi.LimitDay, Amount: c.DayAmount, Transfers: c.DayCount})
	}
	if c.DestinationAmount != nil || c.DestinationCount != nil {
		limits = append(limits, adminapi.NewLimit{Name: adminapi.LimitDestinationDay, Amount: c.DestinationAmount, Transfers: c.DestinationCount})
	}
	if c.RepeatWithin != nil {
		limits = append(limits, adminapi.NewLimit{Name: adminapi.LimitRepeatWithin, RepeatWithin: c.RepeatWithin.String()})
	}
	return limits
}

// spans are the units of a rate.
var spans = map[string]float64{"s": 1, "m": 60, "h": 3600}

// perSecond reads a rate such as 5/s, or nothing for none.
func perSecond(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	number, unit, _ := strings.Cut(text, "/")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n <= 0 || n > 1e9 || spans[unit] == 0 {
		return 0, fmt.Errorf("--rate %q: must be a number of requests a second, minute or hour, such as 5/s or 30/m", text)
	}
	return n / spans[unit], nil
}

func limitRow(l adminapi.Limit) []string {
	rate, burst, until := "-", "-", "for ever"
	if l.RatePerSecond != 0 {
		rate = strconv.FormatFloat(l.RatePerSecond, 'g', 6, 64) + "/s"
	}
	if l.Burst != 0 {
		burst = strconv.FormatInt(l.Burst, 10)
	}
	if l.ExpiresAt != nil {
		until = timeText(l.ExpiresAt)
	}
	if !l.InForce {
		until += " (ended)"
	}
	return []string{l.Name, rate, burst, numberText(l.Limit), moneyText(l), until, l.SetBy, l.Reason}
}

// moneyText is a markup or a payout limit in short.
func moneyText(l adminapi.Limit) string {
	var words []string
	for _, amount := range []*int64{l.Markup, l.Amount} {
		if amount != nil {
			words = append(words, money.Amount(*amount).Format())
		}
	}
	if l.Transfers != nil {
		words = append(words, strconv.FormatInt(*l.Transfers, 10)+" transfers")
	}
	if l.RepeatWithin != "" {
		words = append(words, l.RepeatWithin)
	}
	return cmp.Or(strings.Join(words, ", "), "-")
}
