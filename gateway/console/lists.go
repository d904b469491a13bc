package console

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/list"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
)

// Lists are what operators keep beside policies.
type Lists interface {
	Lists(ctx context.Context, now time.Time) ([]store.ListSize, error)
	ListEntries(ctx context.Context, name string, now time.Time, after store.ListDigest, most int) ([]store.ListEntry, error)
	ListEntriesOf(ctx context.Context, name string, now time.Time, digests []store.ListDigest) ([]store.ListEntry, error)
	AddToList(ctx context.Context, audit store.Audit, name string, entries []store.ListEntry) error
	RemoveFromList(ctx context.Context, audit store.Audit, name, reason string, digests []store.ListDigest) error
}

// Listing are the lists as this replica has them.
type Listing interface {
	Of(in policy.AdmitInput) []string
	Fresh(now time.Time) bool
}

func (c *Console) listLists(x *call, _ adminapi.None) ([]adminapi.ListSize, error) {
	sizes, err := c.deps.Lists.Lists(x.request.Context(), x.now)
	out := make([]adminapi.ListSize, len(sizes))
	for i, s := range sizes {
		out[i] = adminapi.ListSize{List: s.Name, Entries: s.Entries, Changed: s.Changed, Unread: !c.deps.Policy().ReadsList(s.Name)}
	}
	return out, err
}

func (c *Console) showList(x *call, page adminapi.ListPage) ([]adminapi.ListEntry, error) {
	if _, err := listKind(page.List); err != nil {
		return nil, err
	}
	if page.Limit < 1 || page.Limit > adminapi.MostListValues {
		return nil, fault.Invalid("limit", fmt.Sprintf("must be from 1 to %d", adminapi.MostListValues))
	}
	var after store.ListDigest
	if page.After != "" {
		var err error
		if after, err = list.ParseID(page.After); err != nil {
			return nil, fault.Invalid("after", err.Error())
		}
	}
	entries, err := c.deps.Lists.ListEntries(x.request.Context(), page.List, x.now, after, page.Limit)
	return shownEntries(entries, nil), err
}

func (c *Console) findInList(x *call, wanted adminapi.ListValues) ([]adminapi.ListEntry, error) {
	digests, values, err := c.digests(wanted.List, wanted.Values)
	if err != nil {
		return nil, err
	}
	entries, err := c.deps.Lists.ListEntriesOf(x.request.Context(), wanted.List, x.now, digests)
	return shownEntries(entries, values), err
}

func (c *Console) addToList(x *call, wanted adminapi.NewListEntries) (adminapi.ListChanged, error) {
	kind, err := listKind(wanted.List)
	if err != nil {
		return adminapi.ListChanged{}, err
	}
	if err := checkValues("entries", len(wanted.Entries)); err != nil {
		return adminapi.ListChanged{}, err
	}
	entries, there := make([]store.ListEntry, 0, len(wanted.Entries)), map[store.ListDigest]bool{}
	for i, e := range wanted.Entries {
		place := fmt.Sprintf("entries[%d].", i)
		plain, err := kind.Plain(e.Value)
		if err != nil {
			return adminapi.ListChanged{}, fault.Invalid(place+"value", err.Error())
		}
		made := store.ListEntry{Digest: c.deps.ListKey.Digest(kind, plain), Masked: kind.Masked(plain), Reason: e.Reason, SetBy: x.operator.Name, SetAt: x.now}
		if made.Reason == "" {
			made.Reason = wanted.Reason
		}
		if err := needReason(made.Reason); err != nil {
			return adminapi.ListChanged{}, err
		}
		if e.Until != nil {
			if made.EndsAt = e.Until.UTC(); !made.EndsAt.After(x.now) {
				return adminapi.ListChanged{}, fault.Invalid(place+"until", "must lie ahead")
			}
		}
		if there[made.Digest] {
			return adminapi.ListChanged{}, fault.Invalid(place+"value", "is there twice, in whatever spelling")
		}
		there[made.Digest] = true
		entries = append(entries, made)
	}
	err = c.deps.Lists.AddToList(x.request.Context(), x.audit("list.add", listDetail(wanted.List, wanted.Reason, entries)), wanted.List, entries)
	return adminapi.ListChanged{List: wanted.List, Entries: shownEntries(entries, nil), Unread: !c.deps.Policy().ReadsList(wanted.List)}, err
}

func (c *Console) removeFromList(x *call, wanted adminapi.ListRemoval) (adminapi.ListChanged, error) {
	out := adminapi.ListChanged{List: wanted.List}
	if err := needReason(wanted.Reason); err != nil {
		return out, err
	}
	if err := checkValues("values", len(wanted.Values)+len(wanted.IDs)); err != nil {
		return out, err
	}
	digests, values, err := c.digests(wanted.List, wanted.Values)
	if err != nil {
		return out, err
	}
	for _, id := range wanted.IDs {
		digest, err := list.ParseID(id)
		if err != nil {
			return out, fault.Invalid("ids", err.Error())
		}
		digests = append(digests, digest)
	}
	ctx := x.request.Context()
	entries, err := c.deps.Lists.ListEntriesOf(ctx, wanted.List, x.now, digests)
	if err != nil {
		return out, err
	}
	if len(entries) == len(digests) {
		err = c.deps.Lists.RemoveFromList(ctx, x.audit("list.remove", listDetail(wanted.List, wanted.Reason, entries)), wanted.List, wanted.Reason, digests)
	}
	if len(entries) != len(digests) || errors.Is(err, store.ErrNotFound) {
		return out, fault.New(fault.NotFound, fmt.Sprintf("Nothing was removed: %d of %d are on the list. gerbang list find tells which.", len(entries), len(digests)))
	}
	out.Entries = shownEntries(entries, values)
	return out, err
}

func listKind(name string) (list.Kind, error) {
	kind, err := list.KindOf(name)
	if err != nil {
		return "", fault.Invalid("list", err.Error())
	}
	return kind, nil
}

func checkValues(field string, count int) error {
	if count < 1 || count > adminapi.MostListValues {
		return fault.Invalid(field, fmt.Sprintf("must be from 1 to %d", adminapi.MostListValues))
	}
	return nil
}

// needReason refuses an act that nobody could explain later.
func needReason(reason string) error {
	if strings.TrimSpace(reason) == "" {
		return fault.Invalid("reason", "is required: who reads the list later must know why")
	}
	return checkReason(reason)
}

// digests are those of values, with the values as they were given.
func (c *Console) digests(name string, values []string) ([]store.ListDigest, map[store.ListDigest]string, error) {
	kind, err := listKind(name)
	if err != nil {
		return nil, nil, err
	}
	if len(values) > adminapi.MostListValues {
		return nil, nil, checkValues("values", len(values))
	}
	var digests []store.ListDigest
	given := map[store.ListDigest]string{}
	for i, value := range values {
		plain, err := kind.Plain(value)
		if err != nil {
			return nil, nil, fault.Invalid(fmt.Sprintf("values[%d]", i), err.Error())
		}
		digest := c.deps.ListKey.Digest(kind, plain)
		if _, twice := given[digest]; !twice {
			digests = append(digests, digest)
		}
		given[digest] = value
	}
	return digests, given, nil
}

func shownEntries(entries []store.ListEntry, values map[store.ListDigest]string) []adminapi.ListEntry {
	out := make([]adminapi.ListEntry, len(entries))
	for i, e := range entries {
		out[i] = adminapi.ListEntry{ID: list.ID(e.Digest), Masked: e.Masked, Value: values[e.Digest], Reason: e.Reason, By: e.SetBy, Since: e.SetAt}
		if !e.EndsAt.IsZero() {
			out[i].Until = &entries[i].EndsAt
		}
	}
	return out
}

// listDetail is what the audit says of an act: the first entries in their masked form.
func listDetail(name, reason string, entries []store.ListEntry) string {
	const named = 20
	words := make([]string, 0, named)
	for _, e := range entries[:min(len(entries), named)] {
		word := e.Masked + " (" + list.ID(e.Digest)[:12] + ")"
		if !e.EndsAt.IsZero() {
			word += " until " + e.EndsAt.Format(time.RFC3339)
		}
		words = append(words, word)
	}
	detail := fmt.Sprintf("%s, %d: %s", name, len(entries), strings.Join(words, ", "))
	if len(entries) > named {
		detail += fmt.Sprintf(" and %d more", len(entries)-named)
	}
	if reason != "" {
		detail += ": " + reason
	}
	return detail
}
