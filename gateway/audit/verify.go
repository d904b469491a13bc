package audit

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Anchor is a link that somebody knows from before.
type Anchor struct {
	Sequence int64
	Hash     []byte
	From     string // who knows it, such as "was exported"
}

// mostBreaks bounds a report: what is broken so often has one cause.
const mostBreaks = 100

// foundWithin is how long after the chain's beginning entries without a MAC are taken for
// those of a gateway of the version before: an update is over by then.
const foundWithin = 24 * time.Hour

// Verify reads the whole chain and all entries, and tells each that is not as a gateway with
// this keyset has written it: altered, deleted, inserted, put elsewhere, or cut off behind
// one of the anchors.
func Verify(ctx context.Context, s Store, vault Vault, now time.Time, anchors ...Anchor) (store.AuditReport, error) {
	v := &verifying{store: s, vault: vault, now: now, before: store.FirstAuditHash, known: map[int64][]byte{}}
	v.report.Breaks = []store.AuditBreak{}
	for _, a := range anchors {
		v.known[a.Sequence] = nil
	}
	head, err := s.AuditHead(ctx)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return v.report, err
	}
	v.known[head.Sequence] = nil
	if err := v.links(ctx); err != nil {
		return v.report, err
	}
	headless := errors.Is(err, store.ErrNotFound)
	if headless && v.report.Sequence == 0 { // no gateway has begun it
		headless = false
		head.Hash = store.FirstAuditHash
	}
	v.head(head, headless)
	if err := v.end(ctx); err != nil {
		return v.report, err
	}
	for _, a := range anchors {
		if a.Sequence > 0 && !bytes.Equal(v.known[a.Sequence], a.Hash) {
			v.broken(store.AuditBreak{Sequence: a.Sequence, At: now, What: fmt.Sprintf("is not the one that %s, with the hash %x: the chain was cut off or written anew, or an older backup was restored", a.From, a.Hash)})
		}
	}
	return v.report, v.strays(ctx)
}

// verifying is one verification under way.
type verifying struct {
	store  Store
	vault  Vault
	now    time.Time
	report store.AuditReport

	before    []byte           // the hash of the last link, nil where that is not there
	known     map[int64][]byte // the hashes of the links that are compared in the end
	unproven  int64            // links at the end whose keys are gone
	headFresh bool             // the head proves the last link
}

func (v *verifying) broken(b store.AuditBreak) {
	if len(v.report.Breaks) < mostBreaks {
		v.report.Breaks = append(v.report.Breaks, b)
	}
}

// links verifies all links behind the last one.
func (v *verifying) links(ctx context.Context) error {
	for {
		links, err := v.store.AuditLinks(ctx, store.AuditSpan{After: v.report.Sequence, Most: page})
		if err != nil || len(links) == 0 {
			return err
		}
		for _, l := range links {
			v.link(l)
		}
	}
}

func (v *verifying) link(l store.AuditLink) {
	say := func(format string, args ...any) {
		v.broken(store.AuditBreak{Sequence: l.Sequence, ID: &l.ID, At: l.SealedAt, What: fmt.Sprintf(format, args...)})
	}
	if first := v.report.Sequence + 1; l.Sequence != first {
		v.broken(store.AuditBreak{Sequence: first, At: l.SealedAt, What: fmt.Sprintf("is deleted, with all up to link %d", l.Sequence-1)})
		v.before = nil
	}
	if v.report.Since.IsZero() {
		v.report.Since = l.SealedAt
	}
	if v.before != nil && !bytes.Equal(l.Hash, l.HashAfter(v.before)) {
		say("its hash is not that of its content behind the link before: the link was altered, or put elsewhere")
	}
	switch err := v.vault.VerifyAudit(l.MAC, l.Hash); {
	case err == nil:
		v.report.Inherited, v.unproven = v.report.Inherited+v.unproven, 0
	case errors.Is(err, tenants.ErrKeyGone):
		v.unproven++
	default:
		say("no gateway with this keyset has written it: its MAC is not valid")
	}
	switch {
	case l.Proof == store.Forged:
		say("entry %s was altered before it had a link, or was inserted: its MAC was not valid", l.ID)
	case l.Proof == store.Found && l.SealedAt.After(v.report.Since.Add(foundWithin)):
		say("entry %s was inserted: no gateway has given it a MAC", l.ID)
	case l.Proof == store.Found:
		v.report.Found++
	}
	switch e := l.Entry; {
	case e == nil:
		say("entry %s is deleted", l.ID)
	case e.Sequence == l.Sequence && !bytes.Equal(e.Digest(), l.Digest):
		say("entry %s is altered; it reads now %s", l.ID, told(*e))
	case e.Sequence != 0 && e.Sequence < l.Sequence:
		say("entry %s is put back to what it was at link %d", l.ID, e.Sequence)
	}
	v.report.Sequence, v.before = l.Sequence, l.Hash
	v.report.Hash = hex.EncodeToString(l.Hash)
	if _, asked := v.known[l.Sequence]; asked {
		v.known[l.Sequence] = l.Hash
	}
}

// told is an entry for people.
func told(e store.Audit) string {
	return fmt.Sprintf("%q by %q at %s on %s, %q", e.Action, e.Operator, e.Merchant, e.At.Format(time.RFC3339), e.Detail)
}

// head compares the chain with the head that was read before it.
func (v *verifying) head(head store.AuditHead, gone bool) {
	say := func(format string, args ...any) {
		v.broken(store.AuditBreak{Sequence: head.Sequence, At: v.now, What: fmt.Sprintf(format, args...)})
	}
	err := v.vault.VerifyAudit(head.MAC, head.Digest())
	switch {
	case gone:
		v.broken(store.AuditBreak{At: v.now, What: "the row in audit_head is gone, so that nobody knows what was cut off at the end"})
	case head.MAC != nil && err != nil:
		say("is where audit_head ends the chain, and no gateway with this keyset has written that row: its MAC is not valid")
	case head.Sequence > v.report.Sequence:
		say("is the last one by audit_head, and the links behind %d are deleted", v.report.Sequence)
	case head.Sequence > 0 && !bytes.Equal(v.known[head.Sequence], head.Hash):
		say("has another hash than audit_head says")
	case head.Sequence == v.report.Sequence:
		v.headFresh = true
	}
}

// end judges what the chain has behind the head: links that were added since it was read have
// moved it, too.
func (v *verifying) end(ctx context.Context) error {
	head, err := v.store.AuditHead(ctx)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if err == nil && v.report.Sequence > head.Sequence {
		v.broken(store.AuditBreak{Sequence: head.Sequence + 1, At: v.now, What: "is behind the end of the chain by audit_head: it was inserted, or audit_head is put back"})
	}
	switch {
	case v.unproven > 0 && v.headFresh:
		v.report.Inherited += v.unproven
	case v.unproven > 0:
		v.broken(store.AuditBreak{Sequence: v.report.Sequence - v.unproven + 1, At: v.now,
			What: "is the first of those at the end that nothing proves: their key is not in the keyset, and no link behind them has one that is"})
	}
	return nil
}

// strays judges the entries that have no link, or not their own.
func (v *verifying) strays(ctx context.Context) error {
	entries, err := v.store.StrayAudits(ctx, mostBreaks)
	for _, e := range entries {
		say := func(what string) {
			v.broken(store.AuditBreak{ID: &e.ID, At: e.At, What: fmt.Sprintf("entry %s %s; it reads %s", e.ID, what, told(e))})
		}
		begun := !v.report.Since.IsZero() && v.now.After(v.report.Since.Add(foundWithin))
		switch {
		case e.Sequence != 0:
			say(fmt.Sprintf("was inserted: link %d is not its own", e.Sequence))
		case proofOf(v.vault, e, v.now) == store.Found && begun:
			say("was inserted: no gateway has given it a MAC")
		case proofOf(v.vault, e, v.now) == store.Forged:
			say("was altered or inserted: its MAC is not valid")
		default:
			v.report.Waiting++
		}
	}
	return err
}

// ParseAnchor reads the link that a line of an export tells of.
func ParseAnchor(sequence int64, hash string) (*Anchor, error) {
	sum, err := hex.DecodeString(hash)
	if err != nil || len(sum) != len(store.FirstAuditHash) || sequence < 1 {
		return nil, errors.New("audit: a link has a number from 1 and a hash of 64 hexadecimal digits")
	}
	return &Anchor{sequence, sum, "was exported"}, nil
}
