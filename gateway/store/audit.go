package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Audit is who did what to a merchant, and from where. Every method of administration
// writes it in the transaction of the change itself.
type Audit struct {
	Operator string    `json:"operator"`
	Action   string    `json:"action"`           // such as merchant.suspend
	Detail   string    `json:"detail,omitempty"` // for people; no secrets
	At       time.Time `json:"at"`
	// What follows is of entries that are read: what is written comes from where its
	// context says, once.
	ID       uuid.UUID          `json:"id"`
	Merchant tenants.MerchantID `json:"merchant"` // or platform
	From     tenants.Origin     `json:"from,omitempty"`
	Times    int64              `json:"times"`              // it stands for so many, the last of which was at that time
	Sequence int64              `json:"sequence,omitempty"` // of its last link in the chain, 0 while it has none
	MAC      string             `json:"-"`                  // "" for none
}

// Digest is what the entry's MAC is over: all of it.
func (a Audit) Digest() []byte {
	return digestOf("gerbang.audit.entry.v1", a.ID.String(), string(a.Merchant), strconv.FormatInt(a.At.UnixMicro(), 10), a.Operator, a.Action,
		a.Detail, string(a.From), strconv.FormatInt(a.Times, 10))
}

// auditMAC is the MAC of the audit entry, nil where this store makes none.
func (w *write) auditMAC() []byte {
	if w.seal == nil {
		return nil
	}
	return w.seal(Audit{
		ID: w.audit, Merchant: tenants.MerchantID(w.owner.MerchantID), At: w.now, Operator: w.operator, Action: w.action, Detail: w.detail, From: w.origin, Times: w.times,
	}.Digest())
}

// auditing is what an audit entry about an owner writes.
func (s *Store) auditing(ctx context.Context, audit Audit, owner movement.Owner) *write {
	return &write{
		owner: owner, now: micro(audit.At), audit: uuid.New(), times: 1, seal: s.seal,
		operator: audit.Operator, action: audit.Action, detail: audit.Detail, origin: tenants.OriginOf(ctx),
	}
}

// audited writes an audit entry in a transaction.
func audited(ctx context.Context, tx pgx.Tx, w *write) error {
	var id uuid.UUID
	return only(ctx, tx, ofOwner|writeAudit, w, &id)
}

// wasAudited reads an ambiguous administration back: its audit entry is there only
// if everything is.
func (s *Store) wasAudited(ctx context.Context, entry uuid.UUID) bool {
	n, err := readBack(ctx, func(ctx context.Context) (int64, error) { return s.queries.AuditEntries(ctx, entry) })
	return err == nil && n == 1
}

// AuditRange names entries of the audit of a merchant, of all and the platform unless given:
// those from Since on and before Until (now unless given), and of those at Until the ones
// before the entry After. An operator, the beginning of an action and a part of the detail
// narrow it.
type AuditRange struct {
	MerchantID              tenants.MerchantID
	Since, Until            time.Time
	After                   uuid.UUID
	Operator, Action, About string
	Most                    int
}

// AuditOf lists what was done, the newest first.
func (s *Store) AuditOf(ctx context.Context, r AuditRange) ([]Audit, error) {
	if r.Until.IsZero() {
		r.Until = forever
	}
	most := int32(r.Most) //nolint:gosec // a page
	if r.MerchantID == "" {
		rows, err := s.queries.AuditOfAll(ctx, dbsqlc.AuditOfAllParams{
			Since: micro(r.Since), Until: micro(r.Until), After: r.After, Operator: r.Operator, Action: r.Action, About: r.About, Most: most,
		})
		return listed(rows, auditFromRow), wrap("audit", err)
	}
	rows, err := s.queries.AuditOf(ctx, dbsqlc.AuditOfParams{
		MerchantID: string(r.MerchantID), Since: micro(r.Since), Until: micro(r.Until), After: r.After, Operator: r.Operator, Action: r.Action, About: r.About, Most: most,
	})
	return listed(rows, auditFromRow), wrap("audit", err)
}

func listed[Row, Of any](rows []Row, of func(Row) Of) []Of {
	list := make([]Of, len(rows))
	for i, row := range rows {
		list[i] = of(row)
	}
	return list
}

func auditFromRow(row dbsqlc.Audit) Audit {
	a := Audit{
		ID: row.AuditID, Merchant: tenants.MerchantID(row.MerchantID), Operator: row.Operator, Action: row.Action, Detail: row.Detail, At: row.At.UTC(),
		From: tenants.Origin(row.Origin), Times: row.Times, MAC: string(row.Mac),
	}
	if row.Sequence != nil {
		a.Sequence = *row.Sequence
	}
	return a
}

// AuditProof is what an entry's own MAC said when the entry got its link.
type AuditProof string

// The proofs.
const (
	Written AuditProof = "written" // by a gateway with this keyset
	Found   AuditProof = "found"   // without a MAC: older than MACs, or inserted by hand
	Forged  AuditProof = "forged"  // with a wrong one
)

// AuditLink is one link of the chain over all entries. An entry that counts has one for
// each time it was found to have counted.
type AuditLink struct {
	Sequence int64 // from 1, without a gap
	ID       uuid.UUID
	Digest   []byte // of the entry
	Proof    AuditProof
	SealedAt time.Time
	Hash     []byte // of all this and the hash before
	MAC      []byte // of the hash
	Times    int64  // of the entry that is linked; not read
	Entry    *Audit // as it is now, nil where it is gone; not written
}

// HashAfter is the link's hash behind another one.
func (l AuditLink) HashAfter(before []byte) []byte {
	return digestOf("gerbang.audit.link.v1", string(before), strconv.FormatInt(l.Sequence, 10), l.ID.String(), string(l.Digest), string(l.Proof),
		strconv.FormatInt(l.SealedAt.UnixMicro(), 10))
}

// AuditHead is where the chain ends.
type AuditHead struct {
	Sequence int64 // how many links there are
	Hash     []byte
	MAC      []byte
	Sent     int64 // the last link that the sink has
}

// FirstAuditHash stands before the first link.
var FirstAuditHash = make([]byte, sha256.Size)

// Digest is what the head's MAC is over.
func (h AuditHead) Digest() []byte {
	return digestOf("gerbang.audit.head.v1", strconv.FormatInt(h.Sequence, 10), string(h.Hash))
}

// AuditHead reads where the chain ends, ErrNotFound where there is none.
func (s *Store) AuditHead(ctx context.Context) (AuditHead, error) {
	row, err := s.queries.AuditHead(ctx)
	return AuditHead{Sequence: row.Sequence, Hash: row.Hash, MAC: row.Mac, Sent: row.Sent}, wrap("audit's head", notFound(err))
}

// BeginAuditChain writes the first head. It is false where there are links already.
func (s *Store) BeginAuditChain(ctx context.Context, head AuditHead) (bool, error) {
	rows, err := s.queries.BeginAuditChain(ctx, dbsqlc.BeginAuditChainParams{Hash: head.Hash, Mac: head.MAC})
	return rows == 1, wrap("begin the audit's chain", err)
}

// settledAfter is when a gateway of the version before has surely counted an entry for the
// last time: it counts refused sign-ins within an hour.
const settledAfter = time.Hour + time.Minute

// UnsealedAudits lists entries that wait for their link, the oldest first.
func (s *Store) UnsealedAudits(ctx context.Context, now time.Time, most int) ([]Audit, error) {
	rows, err := s.queries.UnsealedAudits(ctx, dbsqlc.UnsealedAuditsParams{Settled: micro(now.Add(-settledAfter)), Ahead: micro(now.Add(settledAfter)), Most: int32(most)}) //nolint:gosec // a page
	return listed(rows, auditFromRow), wrap("unsealed audits", err)
}

// StrayAudits lists entries that are not what their link is of, or have none.
func (s *Store) StrayAudits(ctx context.Context, most int) ([]Audit, error) {
	rows, err := s.queries.StrayAudits(ctx, int32(most)) //nolint:gosec // a page
	return listed(rows, auditFromRow), wrap("stray audits", err)
}

// errMoved says that another replica has moved the head, or an entry has counted meanwhile.
var errMoved = errors.New("store: the audit's chain has moved")

// SealAudits adds links and moves the head behind them, all sealed at one time. It is false,
// and nothing was written, where the head or one of the entries is another one by now.
func (s *Store) SealAudits(ctx context.Context, was, next AuditHead, sealedAt time.Time, links []AuditLink) (bool, error) {
	add := dbsqlc.InsertAuditLinksParams{SealedAt: micro(sealedAt)}
	mark := dbsqlc.LinkAuditsParams{}
	for _, l := range links {
		add.Sequences, add.Ids, add.Digests, add.Proofs = append(add.Sequences, l.Sequence), append(add.Ids, l.ID), append(add.Digests, l.Digest), append(add.Proofs, string(l.Proof))
		add.Hashes, add.Macs, mark.Times = append(add.Hashes, l.Hash), append(add.Macs, l.MAC), append(mark.Times, l.Times)
	}
	mark.Ids, mark.Sequences = add.Ids, add.Sequences
	err := s.Tx(ctx, func(q *dbsqlc.Queries) error {
		rows, err := q.MoveAuditHead(ctx, dbsqlc.MoveAuditHeadParams{Sequence: next.Sequence, Hash: next.Hash, Mac: next.MAC, Was: was.Sequence, WasHash: was.Hash})
		switch {
		case err != nil || len(links) == 0:
			return err
		case rows != 1:
			return errMoved
		}
		if err := q.InsertAuditLinks(ctx, add); err != nil {
			return err
		}
		if rows, err = q.LinkAudits(ctx, mark); err == nil && rows != int64(len(links)) {
			err = errMoved
		}
		return err
	})
	if errors.Is(err, errMoved) {
		return false, nil
	}
	return err == nil, wrap("seal audits", err)
}

// AuditSpan names links: those behind one, and of these the ones whose entries are from Since
// on and before Until (now unless given), or gone.
type AuditSpan struct {
	After        int64
	Since, Until time.Time
	Most         int
}

// AuditLinks lists links in their order, with the entries as they are now.
func (s *Store) AuditLinks(ctx context.Context, span AuditSpan) ([]AuditLink, error) {
	if span.Until.IsZero() {
		span.Until = forever
	}
	rows, err := s.queries.AuditLinks(ctx, dbsqlc.AuditLinksParams{
		After: span.After, Since: micro(span.Since), Until: micro(span.Until), Most: int32(span.Most), //nolint:gosec // a page
	})
	return listed(rows, linkFromRow), wrap("audit's links", err)
}

func linkFromRow(row dbsqlc.AuditLinksRow) AuditLink {
	l := AuditLink{
		Sequence: row.Sequence, ID: row.AuditID, Digest: row.Digest, Proof: AuditProof(row.Proof), SealedAt: row.SealedAt.UTC(), Hash: row.Hash, MAC: row.Mac,
	}
	if row.Entry != nil {
		entry := auditFromRow(dbsqlc.Audit{
			AuditID: *row.Entry, MerchantID: *row.MerchantID, At: *row.At, Operator: *row.Operator, Action: *row.Action, Detail: *row.Detail, Origin: *row.Origin,
			Times: *row.Times, Sequence: row.Last,
		})
		l.Entry = &entry
	}
	return l
}

// AuditLine is a link as it is exported, with its entry as that is then. Where the entry is
// gone, only its id is known.
type AuditLine struct {
	Sequence int64      `json:"sequence"`
	Hash     string     `json:"hash"` // in hex
	SealedAt time.Time  `json:"sealed_at"`
	Proof    AuditProof `json:"proof"`
	ID       uuid.UUID  `json:"id"`
	Entry    *Audit     `json:"entry"`
}

// Line is the link as it is exported.
func (l AuditLink) Line() AuditLine {
	return AuditLine{Sequence: l.Sequence, Hash: hex.EncodeToString(l.Hash), SealedAt: l.SealedAt, Proof: l.Proof, ID: l.ID, Entry: l.Entry}
}

// SentAudits keeps which link the sink has last.
func (s *Store) SentAudits(ctx context.Context, sequence int64) error {
	return wrap("sent audits", s.queries.SentAudits(ctx, sequence))
}

// AuditReport is what a verification of the chain has found.
type AuditReport struct {
	Sequence  int64        `json:"sequence"`  // of the last link
	Hash      string       `json:"hash"`      // its, in hex
	Since     time.Time    `json:"since"`     // the first link: nothing is proven before
	Found     int64        `json:"found"`     // entries without a MAC that were there then
	Waiting   int64        `json:"waiting"`   // entries that have no link yet
	Inherited int64        `json:"inherited"` // links by keys that are gone: the links behind them prove them
	Breaks    []AuditBreak `json:"breaks"`    // at most 100
}

// AuditBreak is one thing that is not as a gateway has written it.
type AuditBreak struct {
	Sequence int64      `json:"sequence,omitempty"` // of the link, 0 where there is none
	ID       *uuid.UUID `json:"id,omitempty"`       // of the entry
	At       time.Time  `json:"at,omitzero"`        // of the link, or of an entry without one
	What     string     `json:"what"`
}

// String is the break for people.
func (b AuditBreak) String() string {
	text := b.What
	if b.Sequence > 0 {
		text = fmt.Sprintf("link %d: %s", b.Sequence, text)
	}
	return text
}
