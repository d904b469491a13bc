package app

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// book is what an attendant has written.
type book struct {
	entries  []string
	broken   bool
	replicas []store.Replica
}

func (b *book) write(entry string) error {
	if b.broken {
		return errors.New("no database")
	}
	b.entries = append(b.entries, entry)
	return nil
}

func (b *book) AddException(_ context.Context, x movement.Exception) (bool, error) {
	if x.Owner != ofPlugins || x.Reason != movement.ReasonPlugin || !x.Lasting || strings.ContainsAny(x.Detail, "\n") {
		return false, errors.New("another exception")
	}
	return true, b.write(x.Subject + " " + x.Detail)
}

func (b *book) ResolveExceptions(_ context.Context, _ time.Time, owner movement.Owner, subject string, _ []string, operator, resolution string) error {
	return b.write(subject + " " + resolution)
}

func (b *book) LiveReplicas(context.Context, time.Time) ([]store.Replica, error) {
	return b.replicas, nil
}

func (b *book) KeepManifest(_ context.Context, _ time.Time, m *manifest.Manifest) error {
	return b.write("manifest of " + m.Name)
}

// TestAttendant: a plugin is listed once it has been down for a while, again each
// minute, and taken off the list when it has run for a minute and is down nowhere else. One that ends again and
// again is listed once. A crash that a moment mends is nothing, and what can't be written
// is written later.
func TestAttendant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, one := &book{}, host.Status{Provider: "one", Running: true, Since: time.Now()}
		a := &attendant{
			plugins: func() []host.Status { return []host.Status{one} }, manifests: func() []*manifest.Manifest { return nil },
			store: b, now: time.Now, log: slog.New(slog.DiscardHandler), site: "here",
			listed: map[string]time.Time{}, ended: map[string]time.Time{}, kept: map[string]bool{},
		}
		after := func(d time.Duration, want ...string) {
			t.Helper()
			time.Sleep(d)
			b.entries = nil
			a.look(t.Context())
			if len(want)+len(b.entries) > 0 && !reflect.DeepEqual(b.entries, want) {
				t.Errorf("%q is written, want %q", b.entries, want)
			}
		}
		goes := func(running bool) {
			one.Running, one.Since, one.Down, one.LastFault = running, time.Now(), time.Now(), "plugin one: no\nfile"
			if running {
				one.Down = time.Time{}
			}
		}
		after(0)
		after(attendEvery)
		after(mended, "plugin one it runs on every replica, on here too") // an earlier process may have listed it
		after(attendEvery)
		goes(false)
		after(time.Second)
		goes(true)
		after(attendEvery)
		one.Running = false // found lost, and not yet said since when
		after(0)
		goes(false)
		b.broken = true
		after(attendEvery)
		b.broken = false
		after(attendEvery, "plugin one on here: plugin one: nofile")
		after(attendEvery)
		after(repeatEvery, "plugin one on here: plugin one: nofile")
		for range 10 { // it runs for some seconds, and ends
			goes(true)
			after(attendEvery)
			goes(false)
			after(time.Second)
		}
		goes(true)
		after(mended - time.Second)
		after(attendEvery, "plugin one it runs on every replica, on here too")
		b.replicas = []store.Replica{{ID: uuid.New(), Plugins: map[string]string{"one": "", "two": "ab"}}}
		after(repeatEvery)
		after(repeatEvery)
		b.replicas = nil // it is gone, and what it has listed with it
		after(attendEvery, "plugin one it runs on every replica, on here too")
		after(attendEvery)
	})
}

// TestManifestsAreKept, each once, and again where that failed.
func TestManifestsAreKept(t *testing.T) {
	t.Parallel()
	m, err := manifest.Parse([]byte(`{
		"manifest": 1, "name": "one", "version": "1.2.3", "title": "Test", "connection": {"type": "object"},
		"operations": [{"path": "/one/products", "kind": "query", "summary": "List", "timeout": "5s",
			"request": {"type": "object"}, "result": {"type": "object"}, "response": {"type": "object"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	b := &book{broken: true}
	a := &attendant{
		plugins: func() []host.Status { return nil }, manifests: func() []*manifest.Manifest { return []*manifest.Manifest{m} },
		store: b, now: time.Now, log: slog.New(slog.DiscardHandler), kept: map[string]bool{},
	}
	a.look(t.Context())
	b.broken = false
	a.look(t.Context())
	a.look(t.Context())
	if want := []string{"manifest of one"}; !reflect.DeepEqual(b.entries, want) {
		t.Errorf("%q is written, want %q", b.entries, want)
	}
}
