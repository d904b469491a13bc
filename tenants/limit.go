package tenants

import (
	"fmt"
	"math"
	"time"
)

// Limit is a limit of a merchant's own, which goes before what its tier says. Zero fields say nothing.
type Limit struct {
	// Name is that of a rate or of a quota, as the policy knows it.
	Name          string
	RatePerSecond float64
	Burst         int64
	// Quota is how much may be used in one period; nil says nothing, zero allows none.
	Quota     *int64
	Reason    string
	SetBy     string // the operator
	SetAt     time.Time
	ExpiresAt time.Time // zero means never
}

// check refuses what no policy could read.
func (l Limit) check() error {
	switch {
	case l.Name == "":
		return fmt.Errorf("%w: a limit needs a name", ErrInvalid)
	case l.RatePerSecond < 0 || math.IsNaN(l.RatePerSecond) || math.IsInf(l.RatePerSecond, 0) || l.Burst < 0 || l.Quota != nil && *l.Quota < 0:
		return fmt.Errorf("%w: a limit is never below zero", ErrInvalid)
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
	if l.Quota != nil {
		l.Quota = new(*l.Quota)
	}
	l.SetAt = l.SetAt.UTC()
	if !l.ExpiresAt.IsZero() {
		l.ExpiresAt = l.ExpiresAt.UTC()
	}
	return l
}
