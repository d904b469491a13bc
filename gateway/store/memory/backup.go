package memory

import (
	"maps"
	"slices"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// Copy is a store of its own with all that stands in this one now, as a backup keeps it.
func (s *Store) Copy() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := &Store{
		Draw: s.Draw, movements: map[movement.Key]*movement.Movement{}, ids: map[movement.ID]*movement.Movement{},
		history: cloned(s.history), notes: cloned(s.notes), exceptions: slices.Clone(s.exceptions), overrides: maps.Clone(s.overrides), claims: maps.Clone(s.claims),
		callbacks: slices.Clone(s.callbacks), written: maps.Clone(s.written), mails: slices.Clone(s.mails),
		balances: maps.Clone(s.balances), postings: slices.Clone(s.postings), usage: maps.Clone(s.usage), marks: maps.Clone(s.marks), amounts: maps.Clone(s.amounts),
		statements: copies(s.statements), lines: copies(s.lines),
	}
	for key, row := range s.movements {
		m := clone(*row)
		kept.movements[key], kept.ids[m.ID] = &m, &m
	}
	return kept
}

func cloned[K comparable, V any](lists map[K][]V) map[K][]V {
	all := map[K][]V{}
	for key, list := range lists {
		all[key] = slices.Clone(list)
	}
	return all
}

func copies[K comparable, V any](rows map[K]*V) map[K]*V {
	all := map[K]*V{}
	for key, row := range rows {
		all[key] = copied(row)
	}
	return all
}
