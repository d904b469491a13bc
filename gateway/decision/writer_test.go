package decision_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/decision"
)

// pages is a storage in memory, which may be away.
type pages struct {
	away   bool
	parts  []decision.Part
	before time.Time
}

func (p *pages) Add(_ context.Context, part decision.Part) error {
	if p.away {
		return errors.New("away")
	}
	p.parts = append(p.parts, part)
	return nil
}

func (p *pages) Forget(_ context.Context, before time.Time) error {
	p.before = before
	return nil
}

// decided counts the decisions of parts, and their inputs.
func decided(t *testing.T, parts []decision.Part) (n, inputs int) {
	t.Helper()
	for _, part := range parts {
		counted, err := decision.Unpack(part.Counts)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range counted {
			for _, of := range c.Counts {
				n += int(of.N)
			}
		}
	}
	return n, len(inputsOf(t, parts))
}

func inputsOf(t *testing.T, parts []decision.Part) (all []decision.Input) {
	t.Helper()
	for _, part := range parts {
		if part.Inputs == nil {
			continue
		}
		opened, err := decision.UnpackInputs(bytes.TrimPrefix(part.Inputs, []byte("sealed")))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, opened...)
	}
	return all
}

func sealing(plain []byte) ([]byte, error) { return append([]byte("sealed"), plain...), nil }

// runWriter writes a log until it is to end.
func runWriter(t *testing.T) (log *decision.Log, to *pages, end func()) {
	log, to = decision.NewLog(), &pages{}
	writer := decision.NewWriter(log, to, sealing, time.Now, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- writer.Run(ctx) }()
	return log, to, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestTheLogIsWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, to, end := runWriter(t)
		once := func(merchant string) {
			s := series(merchant, decision.Policy(1))
			log.Count(time.Now(), s)
			id := decision.ID(uuid.New())
			log.Keep(decision.Input{ID: id, At: time.Now(), Series: s, Amount: new(int64(5)), Fields: map[string]any{"a": "b"}})
		}
		once("mer_a")
		time.Sleep(11 * time.Second)
		if n, inputs := decided(t, to.parts); n != 1 || inputs != 1 || len(to.parts) != 1 {
			t.Errorf("after 11 s %d decisions and %d inputs are written in %d parts", n, inputs, len(to.parts))
		}
		to.away = true
		once("mer_b")
		time.Sleep(11 * time.Second)
		to.away = false
		time.Sleep(time.Hour)
		if n, _ := decided(t, to.parts); n != 2 || !to.before.Equal(to.before.Truncate(time.Second)) || time.Since(to.before) < decision.Kept {
			t.Errorf("%d decisions are written once the storage is back, forgotten before %v", n, to.before)
		}
		once("mer_c")
		end()
		if n, inputs := decided(t, to.parts); n != 3 || inputs != 3 {
			t.Errorf("at the end %d decisions and %d inputs are written", n, inputs)
		}
	})
}

// TestInputsAreWrittenWithTheirAnswer: a log that is written between a refusal and its answer leaves the input for the next
// time, and has it at the end.
func TestInputsAreWrittenWithTheirAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, to, end := runWriter(t)
		refused := func(merchant string) decision.ID {
			id, s := decision.ID(uuid.New()), series(merchant, decision.Policy(1))
			log.Count(time.Now(), s)
			log.Keep(decision.Input{ID: id, At: time.Now(), Series: s})
			return id
		}
		wants := func(when string, decisions, inputs int, unused ...string) {
			t.Helper()
			var got []string
			for _, in := range inputsOf(t, to.parts) {
				got = append(got, fmt.Sprint(in.Merchant, " ", in.Unused))
			}
			slices.Sort(got)
			if n, kept := decided(t, to.parts); n != decisions || kept != inputs || !slices.Equal(got, unused) {
				t.Errorf("%s %d decisions and %d inputs are written: %q", when, n, kept, got)
			}
		}
		time.Sleep(6 * time.Second)
		refused("mer_answered")
		replayed := refused("mer_replayed")
		time.Sleep(5 * time.Second)
		wants("before the answers", 2, 0)
		log.Answered(replayed)
		time.Sleep(10 * time.Second)
		wants("after the answers", 2, 2, "mer_answered false", "mer_replayed true")
		refused("mer_last")
		end()
		wants("at the end", 3, 3, "mer_answered false", "mer_last false", "mer_replayed true")
	})
}

// TestWhatCannotBeWrittenIsBounded: after that the oldest is dropped, and counted.
func TestWhatCannotBeWrittenIsBounded(t *testing.T) {
	t.Parallel()
	log, to := decision.NewLog(), &pages{away: true}
	failing := func(plain []byte) ([]byte, error) { return nil, errors.New("no key") }
	writer := decision.NewWriter(log, to, failing, time.Now, slog.New(slog.DiscardHandler))
	for i := range 100 {
		s := series("mer_a", decision.Policy(1))
		log.Count(noon.Add(time.Duration(i)*time.Minute), s)
		log.Keep(decision.Input{At: noon.Add(time.Duration(i) * time.Minute), Series: s})
		writer.Write(t.Context())
	}
	if counts, inputs := log.Dropped(); counts != 36 || inputs != 100 {
		t.Errorf("%d decisions and %d inputs are dropped", counts, inputs)
	}
	to.away = false
	writer.Write(t.Context())
	if n, inputs := decided(t, to.parts); n != 64 || inputs != 0 {
		t.Errorf("%d decisions and %d inputs are written", n, inputs)
	}
}

func TestAMinuteOfManyMerchantsIsWrittenInParts(t *testing.T) {
	t.Parallel()
	log, to := decision.NewLog(), &pages{}
	for i := range 20_000 {
		log.Count(noon, series(fmt.Sprintf("mer_%06d", i), decision.Admitted))
	}
	decision.NewWriter(log, to, sealing, time.Now, slog.New(slog.DiscardHandler)).Write(t.Context())
	n, _ := decided(t, to.parts)
	if n != 20_000 || len(to.parts) != 3 || to.parts[0].Number == to.parts[1].Number {
		t.Errorf("%d decisions in %d parts", n, len(to.parts))
	}
}
