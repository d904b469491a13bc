// Package audit proves the audit: it links all entries, of merchants and of the platform,
// into one chain of keyed hashes, and verifies it. An act only gives its entry a MAC and
// never waits for the chain; one replica links the entries a moment later, in the order in
// which it finds them, and sends them to where they are kept besides. It must not write
// entries, nor mend what it finds broken.
package audit

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Store is where entries and their chain are. SealAudits is all or nothing, and false where
// the head or an entry is another one than was read.
type Store interface {
	AuditHead(ctx context.Context) (store.AuditHead, error)
	BeginAuditChain(ctx context.Context, head store.AuditHead) (bool, error)
	UnsealedAudits(ctx context.Context, now time.Time, most int) ([]store.Audit, error)
	SealAudits(ctx context.Context, was, next store.AuditHead, sealedAt time.Time, links []store.AuditLink) (bool, error)
	AuditLinks(ctx context.Context, span store.AuditSpan) ([]store.AuditLink, error)
	StrayAudits(ctx context.Context, most int) ([]store.Audit, error)
	SentAudits(ctx context.Context, sequence int64) error
}

// Vault makes and checks MACs. VerifyAudit is tenants.ErrKeyGone where the key that made one
// is not in the keyset.
type Vault interface {
	SealAudit(digest []byte) []byte
	VerifyAudit(mac, digest []byte) error
	OutdatedAudit(mac []byte) bool
}

// Sink takes lines in their order, and again those of which it may have none. It is slow at
// most until the context ends.
type Sink interface {
	Send(ctx context.Context, lines []store.AuditLine) error
}

const (
	every       = time.Second
	verifyEvery = 24 * time.Hour
	page        = 500
	// sendWithin bounds one page to the sink, and retryAfter is how long a sink that is down
	// is left alone.
	sendWithin = 10 * time.Second
	retryAfter = 10 * time.Second
	// again is how many lines a sink gets once more after it was down: what was on its way
	// then may be lost, and nobody acknowledges a line of syslog.
	again = 100
)

// Keeper keeps the chain of one database. Each replica has one, and one of them works.
type Keeper struct {
	store  Store
	vault  Vault
	sink   Sink // nil for none
	leases *queue.Leases
	now    func() time.Time // that all replicas share
	log    *slog.Logger

	sent     int64     // the last line that the sink has, -1 before it is read
	resendAt time.Time // not before

	mu      sync.Mutex
	figures Figures
	seen    store.AuditHead // the furthest head that this replica has known
}

// Figures are what a keeper knows of the chain, zero where it does not.
type Figures struct {
	Sequence int64     // of the last link
	SealedAt time.Time // when nothing was without a link last
	SentAt   time.Time // when the sink had everything last
	Verified time.Time // when the chain was verified last
	Breaks   int       // that this found
}

// New makes a keeper. The leases must be of one bucket.
func New(s Store, vault Vault, sink Sink, leases *queue.Leases, now func() time.Time, log *slog.Logger) *Keeper {
	return &Keeper{store: s, vault: vault, sink: sink, leases: leases, now: now, log: log, sent: -1}
}

// Figures tells what this keeper knows.
func (k *Keeper) Figures() Figures {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.figures
}

// Run links and sends entries each second, and verifies the chain each day, while this
// replica is the one to do it, until the context ends.
func (k *Keeper) Run(ctx context.Context) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var told string
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		err := k.work(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && err.Error() != told {
			k.log.ErrorContext(ctx, "the audit's chain does not go on; acts do, and their entries wait", "error", err)
		}
		if told = ""; err != nil {
			told = err.Error()
		}
	}
}

func (k *Keeper) work(ctx context.Context) error {
	ours, err := k.leases.Hold(ctx)
	if err != nil || len(ours) == 0 {
		k.sent = -1 // another one sends
		return err
	}
	if err := k.Seal(ctx); err != nil {
		return err
	}
	if err := k.Send(ctx); err != nil {
		return err
	}
	if k.now().Sub(k.Figures().Verified) < verifyEvery {
		return nil
	}
	_, err = k.Verify(ctx, nil)
	return err
}

var (
	errHeadGone   = errors.New("audit: the row in audit_head is gone, and there are links: put it back from a backup, and see gerbang audit verify")
	errNewKey     = errors.New("audit: entries wait whose key is not in this replica's keyset: give each replica the same one")
	errHeadForged = errors.New("audit: no gateway with this keyset has written the row in audit_head: see gerbang audit verify")
)

// Seal links all entries that wait.
func (k *Keeper) Seal(ctx context.Context) error {
	for {
		head, err := k.head(ctx)
		if err != nil {
			return err
		}
		now := k.now().UTC().Truncate(time.Microsecond)
		entries, err := k.store.UnsealedAudits(ctx, now, page)
		if err != nil {
			return err
		}
		if len(entries) == 0 && !k.vault.OutdatedAudit(head.MAC) {
			k.know(head, now)
			return nil
		}
		next := head
		var links []store.AuditLink
		for _, entry := range entries {
			proof := proofOf(k.vault, entry, now)
			if proof == "" {
				continue
			}
			l := store.AuditLink{Sequence: next.Sequence + 1, ID: entry.ID, Digest: entry.Digest(), Proof: proof, SealedAt: now, Times: entry.Times}
			l.Hash = l.HashAfter(next.Hash)
			l.MAC = k.vault.SealAudit(l.Hash)
			next.Sequence, next.Hash, links = l.Sequence, l.Hash, append(links, l)
		}
		if len(links) == 0 && len(entries) > 0 {
			return errNewKey
		}
		next.MAC = k.vault.SealAudit(next.Digest())
		// Another replica at it, or an entry that has counted, is seen in the next round.
		if _, err := k.store.SealAudits(ctx, head, next, now, links); err != nil {
			return err
		}
	}
}

// head reads the head, or begins the chain. What nobody has written with this keyset is not
// built upon: what was cut off would be lost in it.
func (k *Keeper) head(ctx context.Context) (store.AuditHead, error) {
	head, err := k.store.AuditHead(ctx)
	if errors.Is(err, store.ErrNotFound) {
		first := store.AuditHead{Hash: store.FirstAuditHash}
		first.MAC = k.vault.SealAudit(first.Digest())
		begun, err := k.store.BeginAuditChain(ctx, first)
		if err == nil && !begun {
			err = errHeadGone
		}
		return first, err
	}
	if err == nil && k.vault.VerifyAudit(head.MAC, head.Digest()) != nil {
		err = errHeadForged
	}
	return head, err
}

// keyWithin is how long an entry waits for a replica that has its key: keysets of their own
// get a new one by and by.
const keyWithin = 24 * time.Hour

// proofOf judges an entry by its MAC, "" where only another replica can.
func proofOf(vault Vault, entry store.Audit, now time.Time) store.AuditProof {
	if entry.MAC == "" {
		return store.Found
	}
	switch err := vault.VerifyAudit([]byte(entry.MAC), entry.Digest()); {
	case err == nil:
		return store.Written
	case errors.Is(err, tenants.ErrKeyGone) && now.Sub(entry.At).Abs() < keyWithin:
		return ""
	}
	return store.Forged
}

// know keeps how far the chain reaches, and says so where it has gone on: what the log has
// said can't be cut off unseen.
func (k *Keeper) know(head store.AuditHead, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if head.Sequence > k.seen.Sequence {
		k.seen = head
		k.log.Info("the audit's chain has gone on", "sequence", head.Sequence, "hash", hex.EncodeToString(head.Hash))
	}
	k.figures.Sequence, k.figures.SealedAt = head.Sequence, now
}

// Send sends what the sink does not have. A sink that is down stops nothing else.
func (k *Keeper) Send(ctx context.Context) error {
	now := k.now()
	if k.sink == nil || now.Before(k.resendAt) {
		return nil
	}
	if k.sent < 0 {
		head, err := k.store.AuditHead(ctx)
		if err != nil {
			return err
		}
		k.sent = head.Sent
	}
	for {
		links, err := k.store.AuditLinks(ctx, store.AuditSpan{After: k.sent, Most: page})
		if err != nil {
			return err
		}
		if len(links) == 0 {
			k.mu.Lock()
			k.figures.SentAt = now
			k.mu.Unlock()
			return nil
		}
		lines := make([]store.AuditLine, len(links))
		for i, l := range links {
			lines[i] = l.Line()
		}
		within, cancel := context.WithTimeout(ctx, sendWithin)
		err = k.sink.Send(within, lines)
		cancel()
		if err != nil {
			k.log.WarnContext(ctx, "the audit's sink takes nothing; it gets what it misses when it does", "after", k.sent, "error", err)
			k.sent, k.resendAt = max(k.sent-again, 0), now.Add(retryAfter)
			return nil
		}
		k.sent = lines[len(lines)-1].Sequence
		if err := k.store.SentAudits(ctx, k.sent); err != nil {
			return err
		}
	}
}

// Verify verifies the whole chain, also against a link that was exported.
func (k *Keeper) Verify(ctx context.Context, exported *Anchor) (store.AuditReport, error) {
	k.mu.Lock()
	anchors := []Anchor{{k.seen.Sequence, k.seen.Hash, "this replica has seen"}}
	k.mu.Unlock()
	if exported != nil {
		anchors = append(anchors, *exported)
	}
	now := k.now()
	report, err := Verify(ctx, k.store, k.vault, now, anchors...)
	if err != nil {
		return report, fmt.Errorf("audit: %w", err)
	}
	k.mu.Lock()
	k.figures.Verified, k.figures.Breaks = now, len(report.Breaks)
	k.mu.Unlock()
	for _, b := range report.Breaks {
		k.log.ErrorContext(ctx, "the audit is not as gateways have written it", "sequence", b.Sequence, "id", b.ID, "at", b.At, "what", b.What)
	}
	return report, nil
}
