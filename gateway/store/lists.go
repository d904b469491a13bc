package store

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// ListDigest is the keyed hash that stands for a value of a list.
type ListDigest [16]byte

// ListChange is what became of an entry.
type ListChange struct {
	List    string
	Digest  ListDigest
	EndsAt  time.Time // zero for never
	Removed bool
	Version int64 // of the act, one after another
}

// ListEntry is what is kept of a value that is on a list.
type ListEntry struct {
	Digest ListDigest
	Masked string
	Reason string
	SetBy  string
	SetAt  time.Time
	EndsAt time.Time // zero for never
}

// ListSize is a list with how many entries it has.
type ListSize struct {
	Name    string
	Entries int64
	Changed time.Time
}

// AddToList puts values on a list, all or none. Of one that is there already the reason and the end are set anew.
func (s *Store) AddToList(ctx context.Context, audit Audit, name string, entries []ListEntry) error {
	in := dbsqlc.PutListEntriesParams{List: name, SetBy: audit.Operator, SetAt: micro(audit.At)}
	for _, e := range entries {
		in.Digests, in.Masked, in.Reasons, in.Ends = append(in.Digests, e.Digest[:]), append(in.Masked, e.Masked), append(in.Reasons, e.Reason), append(in.Ends, micro(e.EndsAt))
	}
	in.Never = micro(time.Time{})
	return s.administer(ctx, "add to a list", audit, tenants.Platform, func(q *dbsqlc.Queries) (err error) {
		if in.Version, err = q.NextListVersion(ctx); err != nil {
			return err
		}
		_, err = q.PutListEntries(ctx, in)
		return err
	})
}

// RemoveFromList takes values off a list. It is ErrNotFound where one is not there, and then all stay.
func (s *Store) RemoveFromList(ctx context.Context, audit Audit, name, reason string, digests []ListDigest) error {
	in := dbsqlc.RemoveListEntriesParams{List: name, Reason: reason, SetBy: audit.Operator, SetAt: micro(audit.At), Digests: rawDigests(digests)}
	return s.administer(ctx, "remove from a list", audit, tenants.Platform, func(q *dbsqlc.Queries) (err error) {
		if in.Version, err = q.NextListVersion(ctx); err != nil {
			return err
		}
		gone, err := q.RemoveListEntries(ctx, in)
		if err == nil && gone != int64(len(digests)) {
			err = ErrNotFound
		}
		return err
	})
}

func rawDigests(digests []ListDigest) [][]byte {
	raw := make([][]byte, len(digests))
	for i := range digests {
		raw[i] = digests[i][:]
	}
	return raw
}

// ListVersion is that of the last act on lists.
func (s *Store) ListVersion(ctx context.Context) (int64, error) {
	version, err := s.queries.ListVersion(ctx)
	if err != nil {
		return 0, fmt.Errorf("store: version of lists: %w", err)
	}
	return version, nil
}

// ListChanges are entries of versions up to one, after a change, in order.
func (s *Store) ListChanges(ctx context.Context, after ListChange, until int64, most int) ([]ListChange, error) {
	rows, err := s.queries.ListChanges(ctx, dbsqlc.ListChangesParams{
		Version: after.Version, List: after.List, Digest: after.Digest[:], Until: until, Most: int32(most), //nolint:gosec // a page
	})
	if err != nil {
		return nil, fmt.Errorf("store: changes of lists: %w", err)
	}
	changes := make([]ListChange, len(rows))
	for i, row := range rows {
		if len(row.Digest) != len(ListDigest{}) {
			return nil, fmt.Errorf("store: the list %s has a digest of %d bytes", row.List, len(row.Digest))
		}
		changes[i] = ListChange{List: row.List, Digest: ListDigest(row.Digest), EndsAt: orZero(row.EndsAt), Removed: row.Removed, Version: row.Version}
	}
	return changes, nil
}

// ListEntries are a page of a list, behind a digest.
func (s *Store) ListEntries(ctx context.Context, name string, now time.Time, after ListDigest, most int) ([]ListEntry, error) {
	start := after[:]
	if after == (ListDigest{}) {
		start = []byte{}
	}
	rows, err := s.queries.ListEntries(ctx, dbsqlc.ListEntriesParams{List: name, Now: micro(now), After: start, Most: int32(most)}) //nolint:gosec // a page
	return listEntries(rows, err)
}

// ListEntriesOf are those of some digests.
func (s *Store) ListEntriesOf(ctx context.Context, name string, now time.Time, digests []ListDigest) ([]ListEntry, error) {
	found, err := s.queries.ListEntriesOf(ctx, dbsqlc.ListEntriesOfParams{List: name, Digests: rawDigests(digests), Now: micro(now)})
	rows := make([]dbsqlc.ListEntriesRow, len(found))
	for i, row := range found {
		rows[i] = dbsqlc.ListEntriesRow(row)
	}
	return listEntries(rows, err)
}

func listEntries(rows []dbsqlc.ListEntriesRow, err error) ([]ListEntry, error) {
	if err != nil {
		return nil, fmt.Errorf("store: entries of a list: %w", err)
	}
	entries := make([]ListEntry, len(rows))
	for i, row := range rows {
		entries[i] = ListEntry{Masked: row.Masked, Reason: row.Reason, SetBy: row.SetBy, SetAt: row.SetAt.UTC(), EndsAt: orZero(row.EndsAt)}
		copy(entries[i].Digest[:], row.Digest)
	}
	return entries, nil
}

// Lists are all lists that have entries.
func (s *Store) Lists(ctx context.Context, now time.Time) ([]ListSize, error) {
	rows, err := s.queries.Lists(ctx, micro(now))
	if err != nil {
		return nil, fmt.Errorf("store: lists: %w", err)
	}
	sizes := make([]ListSize, len(rows))
	for i, row := range rows {
		sizes[i] = ListSize{Name: row.List, Entries: row.Entries, Changed: row.Changed.UTC()}
	}
	return sizes, nil
}
