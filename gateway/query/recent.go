package query

import (
	"bytes"
	"hash/maphash"
	"sync/atomic"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
)

// recent are the small answers that were read last and are not shared. A provider often
// answers the same for a while, such as a rate or a product, and reading an answer costs
// as much as the call of its plugin.
type recent struct {
	seed   maphash.Seed
	places [recentPlaces]atomic.Pointer[readBefore]
}

type readBefore struct {
	answer  answer
	listing *catalog.Listing
}

const (
	recentPlaces = 256
	smallAnswer  = 4 << 10
)

// read reads an answer, unless the last one in its place had the same content.
func (r *recent) read(a answer) (*catalog.Listing, error) {
	if len(a.body) > smallAnswer {
		return read(a)
	}
	place := &r.places[maphash.Bytes(r.seed, a.body)%recentPlaces]
	if known := place.Load(); known != nil && known.answer.op == a.op && bytes.Equal(known.answer.body, a.body) {
		return known.listing, nil
	}
	listing, err := read(a)
	if err == nil {
		place.Store(&readBefore{a, listing})
	}
	return listing, err
}
