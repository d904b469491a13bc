package operators

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// asks is a question that somebody asks.
func asks(by string) question { return question{by: by, role: "policy", version: "v", span: "24h"} }

// attempt is a trial that goes on until a test ends it.
type attempt struct {
	begun  bool
	ended  error // why
	result chan *picture
}

func (a *attempt) try(ctx context.Context, progress func(adminapi.ImpactProgress)) (*picture, error) {
	a.begun = true
	progress(adminapi.ImpactProgress{Decisions: 3, Of: 9})
	select {
	case p := <-a.result:
		return p, nil
	case <-ctx.Done():
		a.ended = ctx.Err()
		return nil, ctx.Err()
	}
}

func begin(ts *trials, q question) *attempt {
	a := &attempt{result: make(chan *picture)}
	ts.begin(context.Background(), q, a.try)
	synctest.Wait()
	return a
}

func TestATrialTellsItsProgressAndKeepsItsResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ts, q := newTrials(time.Now), asks("ayu")
		if ts.look(q) != nil {
			t.Error("there is a trial that nobody began")
		}
		a := begin(ts, q)
		if s := ts.look(q); s == nil || s.over || s.progress.Decisions != 3 || s.progress.Of != 9 {
			t.Errorf("on its way it is %+v", s)
		}
		if again := begin(ts, q); again.begun || a.ended != nil {
			t.Error("what is asked for twice is tried twice")
		}
		for what, other := range map[string]question{
			"another operator": asks("budi"), "another role": {by: "ayu", role: "admin", version: "v", span: "24h"}, "another span": {by: "ayu", role: "policy", version: "v", span: "1h"},
		} {
			if ts.look(other) != nil {
				t.Errorf("%s sees it", what)
			}
		}
		a.result <- &picture{Left: 7}
		synctest.Wait()
		time.Sleep(keptFor - time.Second)
		if s := ts.look(q); s == nil || !s.over || s.result.Left != 7 || s.err != nil {
			t.Errorf("in the end it is %+v", s)
		}
		time.Sleep(keptFor - time.Second)
		if ts.look(q) == nil {
			t.Error("it is forgotten although it was asked for")
		}
		time.Sleep(keptFor + time.Second)
		if ts.look(q) != nil {
			t.Error("it is kept although nobody asked for it")
		}
	})
}

func TestATrialThatNobodyAsksForEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ts, q := newTrials(time.Now), asks("ayu")
		a := begin(ts, q)
		for range 10 {
			time.Sleep(awaited - time.Second)
			if ts.look(q) == nil {
				t.Fatal("it has ended although it is asked for")
			}
		}
		time.Sleep(awaited + time.Second)
		synctest.Wait()
		if !errors.Is(a.ended, context.Canceled) || ts.look(q) != nil {
			t.Errorf("a minute after it was asked for last, it has ended by %v", a.ended)
		}
	})
}

func TestAnOperatorsNextTrialEndsTheOneBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ts := newTrials(time.Now)
		first, of := begin(ts, asks("ayu")), begin(ts, asks("budi"))
		next := question{by: "ayu", role: "policy", version: "v", span: "1h"}
		second := begin(ts, next)
		if first.ended == nil || !second.begun || of.ended != nil {
			t.Errorf("the first ended by %v, the next one has begun: %v, another operator's ended by %v", first.ended, second.begun, of.ended)
		}
		if ts.look(asks("ayu")) != nil || ts.look(next) == nil || ts.look(asks("budi")) == nil {
			t.Error("others are kept than those that run")
		}
		// One that takes a while to end is waited for: the admin API tries one at a time.
		stuck := make(chan struct{})
		ts.begin(context.Background(), asks("citra"), func(context.Context, func(adminapi.ImpactProgress)) (*picture, error) {
			<-stuck
			return nil, nil //nolint:nilnil // it is not looked at
		})
		waits := begin(ts, question{by: "citra", span: "1h"})
		if waits.begun {
			t.Error("the next one does not wait")
		}
		close(stuck)
		synctest.Wait()
		if !waits.begun {
			t.Error("the next one waits for ever")
		}
		for _, a := range []*attempt{second, of, waits} {
			a.result <- nil
		}
	})
}

// TestTwoPagesDoNotEndEachOthersTrials: a page whose trial was ended by its operator's next one begins it again once that is over.
func TestTwoPagesDoNotEndEachOthersTrials(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ts := newTrials(time.Now)
		resume := func(q question) *attempt {
			a := &attempt{result: make(chan *picture)}
			ts.resume(context.Background(), q, a.try)
			synctest.Wait()
			return a
		}
		first := begin(ts, asks("ayu"))
		second := begin(ts, question{by: "ayu", role: "policy", version: "v", span: "1h"})
		if again := resume(asks("ayu")); first.ended == nil || again.begun || second.ended != nil {
			t.Errorf("the page of the first begins it: %v, which ends the second by %v", again.begun, second.ended)
		}
		others := resume(asks("budi"))
		second.result <- nil
		synctest.Wait()
		again := resume(asks("ayu"))
		if !others.begun || !again.begun {
			t.Errorf("another operator's begins: %v, the first once the second is over: %v", others.begun, again.begun)
		}
		others.result <- nil
		again.result <- nil
	})
}

func TestTrialsEndWithTheProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ts := newTrials(time.Now)
		ctx, end := context.WithCancel(t.Context())
		a := begin(ts, asks("ayu"))
		ended := make(chan error, 1)
		go func() { ended <- ts.run(ctx) }()
		synctest.Wait()
		end()
		if err := <-ended; err != nil || a.ended == nil {
			t.Errorf("ended by %v, %v", err, a.ended)
		}
		if late := begin(ts, asks("ayu")); late.begun {
			t.Error("one begins after the end")
		}
	})
}

func TestNoMoreThanSoManyTrialsAreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ts := newTrials(time.Now)
		var all []*attempt
		for i := range mostTrials + 1 {
			time.Sleep(time.Millisecond)
			all = append(all, begin(ts, asks(strings.Repeat("x", i+1))))
		}
		if len(ts.of) != mostTrials || all[0].ended == nil || slices.ContainsFunc(all[1:], func(a *attempt) bool { return a.ended != nil }) {
			t.Errorf("%d are kept, and the first ended by %v", len(ts.of), all[0].ended)
		}
		for _, a := range all[1:] {
			a.result <- nil
		}
	})
}

// TestAnImpactIsShownAsItGoes: the page begins what is not there, and renews itself until there is a result or a refusal.
func TestAnImpactIsShownAsItGoes(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "id"} {
		v := enter(t, "policy", language, false)
		const path = "/policies/some/impact?since=24h"
		show := func(renews bool, texts ...string) {
			t.Helper()
			status, body := v.ask(http.MethodGet, path, nil)
			v.judge(path, status, body)
			if status != http.StatusOK || strings.Contains(body, `hx-trigger="every 1s"`) != renews || strings.Contains(body, `action="/policies/some/impact"`) == renews {
				t.Errorf("%d, and it is to renew itself: %v\n%s", status, renews, body)
			}
			for _, text := range texts {
				if !strings.Contains(body, text) {
					t.Errorf("it does not say %q\n%s", text, body)
				}
			}
		}
		show(true) // this replica has none, and begins one
		v.trials.running.Wait()
		show(false, `<svg class="bar"`)
		q := question{by: visits, role: "policy", version: "some", span: "24h"}
		told, goOn := make(chan struct{}), make(chan struct{})
		v.trials.begin(t.Context(), q, func(_ context.Context, progress func(adminapi.ImpactProgress)) (*picture, error) {
			<-goOn
			progress(adminapi.ImpactProgress{Decisions: 16384, Of: 1_000_000, At: time.Unix(1, 0)})
			told <- struct{}{}
			<-goOn
			return nil, &adminapi.Failure{Status: http.StatusConflict, Envelope: fault.Envelope{Message: "A policy is being tried already."}}
		})
		show(true, "<progress aria-label")
		goOn <- struct{}{}
		<-told
		show(true, `<progress max="1000000" value="16384"`, "16.384 ", " 1.000.000 ")
		goOn <- struct{}{}
		v.trials.running.Wait()
		show(false, `<p class="warning">A policy is being tried already.`)
		v.post("/policies/some/impact", map[string][]string{"since": {"24h"}}, http.StatusSeeOther)
		v.trials.running.Wait()
		show(false, `<svg class="bar"`, "</table>")
	}
}
