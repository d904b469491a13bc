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

const (
	limitHasQuota = 1 << iota // how much follows
	limitExpires              // an end follows
)

// limits packs a merchant's own limits to the end of its record. Most have none, and pay nothing for it.
func (p *packer) limits(limits []Limit) error {
	seen := make(map[string]bool, len(limits))
	for _, l := range limits {
		if err := l.check(); err != nil {
			return err
		}
		if seen[l.Name] {
			return fmt.Errorf("%w: the same limit twice", ErrInvalid)
		}
		seen[l.Name] = true
		var flags byte
		if l.Quota != nil {
			flags |= limitHasQuota
		}
		if !l.ExpiresAt.IsZero() {
			flags |= limitExpires
		}
		p.buf = append(p.buf, flags)
		packText(p, l.Name)
		p.number(math.Float64bits(l.RatePerSecond))
		p.number(uint64(l.Burst)) //nolint:gosec // the same bits back
		packText(p, l.Reason)
		packText(p, l.SetBy)
		p.time(l.SetAt)
		if l.Quota != nil {
			p.number(uint64(*l.Quota)) //nolint:gosec // the same bits back
		}
		if !l.ExpiresAt.IsZero() {
			p.time(l.ExpiresAt)
		}
	}
	return nil
}

// limits reads what is left of a merchant's record.
func (u *unpacker) limits() []Limit {
	var limits []Limit
	for u.rest != "" {
		flags := u.byte()
		l := Limit{
			Name: u.text(), RatePerSecond: math.Float64frombits(u.number()), Burst: int64(u.number()), //nolint:gosec // as above
			Reason: u.text(), SetBy: u.text(), SetAt: u.time(),
		}
		if flags&limitHasQuota != 0 {
			l.Quota = new(int64(u.number())) //nolint:gosec // as above
		}
		if flags&limitExpires != 0 {
			l.ExpiresAt = u.time()
		}
		limits = append(limits, l)
	}
	return limits
}
