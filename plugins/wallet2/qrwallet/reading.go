package qrwallet

import (
	"context"
	"sync"
	"time"
)

// documents are those of readings that have more pages to read: a document that is read
// page by page is fetched once. They are kept in memory, for a while, and nowhere else.
var documents = kept{of: map[string]fetched{}}

// keptFor is how long a reading's next page is waited for.
const keptFor = time.Minute

type kept struct {
	mu sync.Mutex
	of map[string]fetched // by reading
}

type fetched struct {
	from  remote
	files []file
	until time.Time
}

// once is a document as one reading sees it.
type once struct {
	remote
	reading string
}

func (o once) list(ctx context.Context) ([]file, error) {
	if files, ok := documents.take(o); ok {
		return files, nil
	}
	return o.remote.list(ctx)
}

// take returns what was kept of a reading, and keeps it no longer.
func (k *kept) take(o once) ([]file, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	had, ok := k.of[o.reading]
	delete(k.of, o.reading)
	return had.files, ok && had.from == o.remote && time.Now().Before(had.until)
}

// keep keeps a reading's document for its next page, and forgets those whose readings
// have not gone on.
func (k *kept) keep(o once, files []file) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	for reading, had := range k.of {
		if !now.Before(had.until) {
			delete(k.of, reading)
		}
	}
	k.of[o.reading] = fetched{o.remote, files, now.Add(keptFor)}
}
