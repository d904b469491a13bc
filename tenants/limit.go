package tenants

import (
	"fmt"
	"math"
	"time"
)

// Names of limits that are neither a rate's nor a quota's. No policy may call a quota so: its names have no colon.
const (
	LimitMarkup         = "price:markup"
	LimitDay            = "payout:day"
	LimitDestinationDay = "payout:destination_day"
	LimitRepeatWithin   = "payout:repeat_within"
)

// Limit is a limit of a merchant's own, which goes before what its tier says. Zero fields say nothing.
type Limit struct {
	// Name is that of a rate or of a quota, as the policy knows it, or one of the constants.
	Name          string
	RatePerSecond float64
	Burst         int64
	// Quota is how much may be used in one period; nil says nothing, zero allows none.
	Quota *int64
	// Markup is what is added to prices, in rupiah; of LimitMarkup alone.
	Markup *int64
	// Amount, in rupiah, and Transfers are what may go out in a day; of LimitDay and LimitDestinationDay.
	Amount    *int64
	Transfers *int64
	// RepeatWithin is for how long equal transfers without a reference are refused; of LimitRepeatWithin.
	RepeatWithin *time.Duration
	Reason       string
	SetBy        string // the operator
	SetAt        time.Time
	ExpiresAt    time.Time // zero means never
}

// maxMarkup and maxRepeat are what a policy takes, too.
const (
	maxMarkup = 1_000_000_000
	maxRepeat = 24 * time.Hour
)

// check refuses what no policy could read.
func (l Limit) check() error {
	below := func(n *int64) bool { return n != nil && *n < 0 }
	switch {
	case l.Name == "":
		return fmt.Errorf("%w: a limit needs a name", ErrInvalid)
	case l.RatePerSecond < 0 || math.IsNaN(l.RatePerSecond) || math.IsInf(l.RatePerSecond, 0) || l.Burst < 0,
		below(l.Quota), below(l.Markup), below(l.Amount), below(l.Transfers), l.RepeatWithin != nil && *l.RepeatWithin < 0:
		return fmt.Errorf("%w: a limit is never below zero", ErrInvalid)
	case l.Markup != nil && *l.Markup > maxMarkup:
		return fmt.Errorf("%w: a markup is at most %d", ErrInvalid, maxMarkup)
	case l.RepeatWithin != nil && (*l.RepeatWithin > maxRepeat || *l.RepeatWithin%time.Second != 0):
		return fmt.Errorf("%w: transfers repeat within whole seconds and a day at most", ErrInvalid)
	case (l.Markup != nil) != (l.Name == LimitMarkup),
		(l.Amount != nil || l.Transfers != nil) != (l.Name == LimitDay || l.Name == LimitDestinationDay),
		(l.RepeatWithin != nil) != (l.Name == LimitRepeatWithin):
		return fmt.Errorf("%w: the limit %q can't be set so", ErrInvalid, l.Name)
	}
	return nil
}

// checkLimits refuses two limits of one name.
func checkLimits(limits []Limit) error {
	seen := make(map[string]bool, len(limits))
	for _, l := range limits {
		if err := l.check(); err != nil {
			return err
		}
		if seen[l.Name] {
			return fmt.Errorf("%w: the same limit twice", ErrInvalid)
		}
		seen[l.Name] = true
	}
	return nil
}

func (l Limit) clone() Limit {
	for _, number := range []**int64{&l.Quota, &l.Markup, &l.Amount, &l.Transfers} {
		if *number != nil {
			*number = new(**number)
		}
	}
	if l.RepeatWithin != nil {
		l.RepeatWithin = new(*l.RepeatWithin)
	}
	l.SetAt = l.SetAt.UTC()
	if !l.ExpiresAt.IsZero() {
		l.ExpiresAt = l.ExpiresAt.UTC()
	}
	return l
}
