package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// mostMoves is how often a movement can move on, or be polled, while a fact is applied:
// the states only go forward, and polls are far apart.
const mostMoves = 6

// Apply takes in a fact about a movement. Whoever brings it (a lookup, a
// notification, a statement, an operator), it ends here. It returns the movement as
// it stands then. An error means that the fact must be told again.
func (l *Lifecycle) Apply(ctx context.Context, op *catalog.Operation, m movement.Movement, f movement.Fact) (movement.Movement, error) {
	m, _, err := l.apply(ctx, op, m, f)
	return m, err
}

// ApplyOnce is [Lifecycle.Apply], which also tells whether this fact has moved the
// movement, and not somebody else's.
func (l *Lifecycle) ApplyOnce(ctx context.Context, op *catalog.Operation, m movement.Movement, f movement.Fact) (movement.Movement, bool, error) {
	m, led, err := l.apply(ctx, op, m, f)
	return m, led == ledToMove, err
}

// ledTo is what the applying of a fact has led to.
type ledTo int

const (
	ledToNothing   ledTo = iota
	ledToException       // and to nothing else
	ledToMove
)

func (l *Lifecycle) apply(ctx context.Context, op *catalog.Operation, m movement.Movement, f movement.Fact) (_ movement.Movement, led ledTo, err error) {
	event := uuid.New() // the same on every try
	for range mostMoves {
		// 1. What the fact means for the movement as it was seen.
		f.Now = l.Now()
		l.addReports(op, m, &f)
		t := movement.Apply(op.Rules, m, f)
		// What operators must know is listed before the rest is committed, which may leave
		// nothing to poll: nobody would tell it again.
		if err := l.list(ctx, m, t.Exceptions); err != nil {
			return m, ledToException, err
		}
		if t.Effect == movement.Nothing || t.Effect == movement.Contradiction {
			if len(t.Exceptions) > 0 {
				led = ledToException
			}
			return m, led, nil
		}
		// 2. All that follows from it, in one commit.
		c, done, err := l.commit(ctx, op, m, f, event)
		if err != nil {
			return m, ledToNothing, err
		}
		moves := t.Effect == movement.Move || t.Effect == movement.Renewal || t.Effect == movement.Errored
		if moves && done {
			if t.Releases {
				l.releaseAmount(ctx, m)
			}
			return c.After(), ledToMove, nil
		}
		// 3. The movement as it stands now. Where another replica was faster, or has
		// polled it, the fact is about that.
		was := m
		m, err = l.Reread(ctx, m.ID)
		if err == nil && moves && m.Provider != was.Provider && !ofAttempt(f) {
			return m, ledToNothing, fmt.Errorf("lifecycle: movement %s went from provider %s to %s while a fact was applied", m.ID, was.Provider, m.Provider)
		}
		if err != nil || !moves || !stillAbout(op.Rules, f, was, m) {
			return m, ledToNothing, err
		}
	}
	return m, ledToNothing, errors.New("lifecycle: a movement kept changing while a fact was applied")
}

// stillAbout tells whether a fact that found its movement changed is about what stands
// there now. A "not found" is not: it is proof only if nothing has happened since. Nor
// is an absence where a poll sends the same request again: one may have sent it since.
func stillAbout(rules movement.Rules, f movement.Fact, was, now movement.Movement) bool {
	switch {
	case now.Attempt != was.Attempt:
		return !ofAttempt(f)
	case f.Says == movement.SaysNotFound, f.Says == movement.SaysAbsent && rules.Resubmits:
		return false
	}
	return now.State != was.State || now.Version != was.Version
}

// ofAttempt tells of a fact that it is about the attempt that its movement stood at, and
// no later one: what a call or a lookup of that attempt says. What else a provider
// says is about a name, which the same request keeps over attempts.
func ofAttempt(f movement.Fact) bool {
	_, update := f.State()
	return !update || f.Source == movement.FromCall || f.Source == movement.FromLookup
}

// commit commits what a fact leads to, with what is rendered for it. It is the one
// place where a movement's state changes. A false may also mean that an earlier try
// of ours was through without our hearing of it, so whoever gets one reads what
// stands there.
func (l *Lifecycle) commit(ctx context.Context, op *catalog.Operation, m movement.Movement, f movement.Fact, event uuid.UUID) (c movement.Change, done bool, err error) {
	done, err = Persist(ctx, l.Patience, func(ctx context.Context) (bool, error) {
		f.Now = l.Now() // of this try, or the event would be older than its commit
		c = movement.Change{Transition: movement.Apply(op.Rules, m, f), Movement: m, At: f.Now}
		if err := l.render(ctx, op, &c, event); err != nil {
			return false, err
		}
		return l.Store.Apply(ctx, c)
	})
	if c.Callback != nil && c.Callback.URL != "" && l.CallbackCommitted != nil {
		l.CallbackCommitted()
	}
	if c.Mail != nil && done {
		l.MailCommitted()
	}
	return c, done, err
}

// render makes the creation's answer, the callback and the receipt of a transition.
// They are rendered now, so that a late delivery never tells old news as new.
func (l *Lifecycle) render(ctx context.Context, op *catalog.Operation, c *movement.Change, event uuid.UUID) error {
	then := c.After()
	kind := l.kinds[op.Kind]
	if c.Answers {
		c.Answer = firstAnswer(kind, op, then)
	}
	if name := op.Rules.Event(c.Tells); name != "" && op.Status != nil {
		receiver, err := l.receiver(ctx, then)
		if err != nil {
			return err
		}
		body := (&Object{}).SetText("event", name).SetJSON("data", kind.Event(op, then, c.At).JSON())
		c.Callback = &movement.CallbackEvent{ID: event, Event: name, URL: receiver, Body: body.JSON()}
	}
	if receipter, mails := kind.(Receipter); mails && c.Receipt && l.MailCommitted != nil {
		if c.Mail = receipter.Receipt(ctx, then); c.Mail != nil {
			c.Mail.ID = event
		}
	}
	return nil
}

// firstAnswer is the data of a creation's first answer, which a replay repeats.
func firstAnswer(kind Kind, op *catalog.Operation, m movement.Movement) json.RawMessage {
	answer, err := kind.Answer(op, m)
	if err != nil {
		return nil
	}
	data, _ := answer.Data.(json.RawMessage) // kinds answer nothing else
	return data
}

// receiver is where a movement's callbacks go: the URL of its request, or the
// merchant's default, or nowhere.
func (l *Lifecycle) receiver(ctx context.Context, m movement.Movement) (string, error) {
	if m.CallbackURL != "" {
		return m.CallbackURL, nil
	}
	account, err := l.Account(ctx, m)
	if err != nil {
		return "", err
	}
	return account.CallbackURL(tenants.Mode(m.Owner.Mode)), nil
}

// releaseAmount gives back the reserved amount of a collection that nobody was told
// of, so that tries that come to nothing use up no amounts. Where that fails the
// amount becomes free in its time.
func (l *Lifecycle) releaseAmount(ctx context.Context, m movement.Movement) {
	if err := l.Store.ReleaseAmount(ctx, m); err != nil {
		l.Log.WarnContext(ctx, "the amount of a collection that was not made stays reserved for a while", "movement", m.ID.String(), "error", err)
	}
}

// acknowledge records that a merchant reads that a movement is pending, and with it
// the first answer of one that has none, but where that is an offer: nobody has it yet.
func (l *Lifecycle) acknowledge(ctx context.Context, op *catalog.Operation, m movement.Movement) (movement.Movement, error) {
	var answer json.RawMessage
	if op.Rules.Answers != movement.AnswerOffer {
		answer = firstAnswer(l.kinds[op.Kind], op, m)
	}
	if !m.State.Unknown() {
		return l.keepAnswer(ctx, m, answer)
	}
	then, err := Persist(ctx, l.Patience, func(ctx context.Context) (movement.Movement, error) {
		return l.Store.Acknowledge(ctx, m, answer)
	})
	if err != nil {
		return m, err
	}
	if op.Rules.Answers == movement.AnswerPending && !then.Answered() && !then.State.Unknown() && then.State != movement.NotSubmitted {
		return l.keepAnswer(ctx, then, answer) // moved on by somebody else, who gave no answer
	}
	return then, nil
}

func (l *Lifecycle) keepAnswer(ctx context.Context, m movement.Movement, answer json.RawMessage) (movement.Movement, error) {
	_, err := Persist(ctx, l.Patience, func(ctx context.Context) (bool, error) {
		return l.Store.Apply(ctx, movement.Change{
			Transition: movement.Transition{Effect: movement.KeepAnswer}, Movement: m, At: l.Now(), Answer: answer,
		})
	})
	if err != nil {
		return m, err
	}
	return l.Reread(ctx, m.ID)
}

// Reread reads a movement as it stands now.
func (l *Lifecycle) Reread(ctx context.Context, id movement.ID) (movement.Movement, error) {
	return Persist(ctx, l.Patience, func(ctx context.Context) (movement.Movement, error) {
		return l.Store.MovementByID(ctx, id)
	})
}
