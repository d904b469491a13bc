package mail_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/mail"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/queue/queuetest"
)

// bag is the store's queue of mails, in memory.
type bag struct {
	mu     sync.Mutex
	mails  map[uuid.UUID]movement.QueuedMail
	due    map[uuid.UUID]time.Time
	ended  map[uuid.UUID]movement.MailAttempt
	faults []string
	err    error // of writing
}

func newBag() *bag {
	return &bag{mails: map[uuid.UUID]movement.QueuedMail{}, due: map[uuid.UUID]time.Time{}, ended: map[uuid.UUID]movement.MailAttempt{}}
}

func (b *bag) add(to string) uuid.UUID {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := uuid.New()
	b.mails[id] = movement.QueuedMail{Mail: movement.Mail{ID: id, To: to, Subject: "S", Text: "T"}, CreatedAt: time.Now()}
	b.due[id] = time.Now()
	return id
}

// link has a mail's link end at a time.
func (b *bag) link(id uuid.UUID, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.mails[id]
	m.Until = until
	b.mails[id] = m
}

// DueMails reads what is due.
func (b *bag) DueMails(_ context.Context, buckets []int, since, now time.Time, most int) ([]movement.QueuedMail, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var due []movement.QueuedMail
	for id, at := range b.due {
		if !at.Before(since) && !at.After(now) && len(due) < most && slices.Contains(buckets, movement.ID(id).Bucket()) {
			due = append(due, b.mails[id])
		}
	}
	return due, nil
}

// RecordMail writes a try.
func (b *bag) RecordMail(_ context.Context, a movement.MailAttempt) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := a.Mail.ID
	if b.err != nil || b.mails[id].Attempts != a.Mail.Attempts {
		return false, b.err
	}
	a.Mail.Attempts++
	b.mails[id] = a.Mail
	delete(b.due, id)
	if b.faults = append(b.faults, a.Fault); a.Then == movement.MailWaiting {
		b.due[id] = a.DueAt
	} else {
		b.ended[id] = a
	}
	return true, nil
}

// end is what became of a mail, nothing while it waits.
func (b *bag) end(id uuid.UUID) movement.MailState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended[id].Then
}

func (b *bag) ends() (sent, dead int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.ended {
		if a.Then == movement.MailSent {
			sent++
		} else {
			dead++
		}
	}
	return sent, dead
}

// mailServer takes mails, or says no to those of some recipients.
type mailServer struct {
	mu    sync.Mutex
	got   map[string]int // by mail
	fails map[string]error
	takes time.Duration
}

// Send hands a mail over.
func (m *mailServer) Send(ctx context.Context, message mail.Message) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(m.takes):
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.got == nil {
		m.got = map[string]int{}
	}
	m.got[message.ID]++
	return m.fails[message.To]
}

func (m *mailServer) say(to string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fails = map[string]error{to: err}
}

// handed counts what was handed over, in all and of the mail that came most often.
func (m *mailServer) handed() (all, most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.got {
		all, most = all+n, max(most, n)
	}
	return all, most
}

func (m *mailServer) tries(id uuid.UUID) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.got[id.String()]
}

// post runs an outbox until the returned function is called.
func post(t *testing.T, leases queue.LeaseStore, b *bag, m *mailServer, name string) (o *mail.Outbox, log *queuetest.Log, end func()) {
	t.Helper()
	log = &queuetest.Log{}
	o = mail.NewOutbox(b, m.Send, nil, queue.NewLeases(leases, "mails", name, movement.Buckets, time.Now), slog.New(slog.NewTextHandler(log, nil)))
	return o, log, queuetest.Start(t, o.Run)
}

func TestMailsAreSentOnceByWhicheverReplica(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, m, leases := newBag(), &mailServer{takes: 50 * time.Millisecond}, queuetest.NewTable()
		var all []uuid.UUID
		for i := range 200 {
			all = append(all, b.add(fmt.Sprintf("payer%d@example.com", i)))
		}
		_, _, endOne := post(t, leases, b, m, "one")
		_, _, endOther := post(t, leases, b, m, "other")
		time.Sleep(30 * time.Second)
		if sent, dead := b.ends(); sent != 200 || dead != 0 {
			t.Errorf("%d sent, %d dead", sent, dead)
		}
		for _, id := range all {
			if n := m.tries(id); n != 1 {
				t.Errorf("a mail was sent %d times", n)
			}
		}
		endOne()
		endOther()
	})
}

// TestALinkThatHasEndedIsNotSent: neither at the first attempt nor at a later one.
func TestALinkThatHasEndedIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, m := newBag(), &mailServer{}
		ended, ends, good := b.add("ended@example.com"), b.add("away@example.com"), b.add("good@example.com")
		b.link(ended, time.Now())
		b.link(ends, time.Now().Add(10*time.Minute))
		b.link(good, time.Now().Add(10*time.Minute))
		m.say("away@example.com", &mail.Fault{Reason: "away", Code: 450})
		_, _, end := post(t, queuetest.NewTable(), b, m, "one")
		time.Sleep(time.Hour)
		if m.tries(ended) != 0 || b.end(ended) != movement.MailDead || m.tries(good) != 1 || b.end(good) != movement.MailSent {
			t.Errorf("ended: %d attempts, %q; good: %d attempts, %q", m.tries(ended), b.end(ended), m.tries(good), b.end(good))
		}
		tries := m.tries(ends)
		if tries < 2 || b.end(ends) != movement.MailDead {
			t.Errorf("while the link is good: %d attempts, %q", tries, b.end(ends))
		}
		m.say("", nil)
		time.Sleep(24 * time.Hour)
		if m.tries(ends) != tries {
			t.Error("a mail is tried after its link has ended")
		}
		end()
	})
}

// TestWhatFollowsATry: a recipient that can't be is given up at once, a server
// that is away is asked again for a day, and a try that can't be written is made
// again.
func TestWhatFollowsATry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, m := newBag(), &mailServer{}
		never, away := b.add("nobody@example.com"), b.add("payer@example.com")
		refused := &mail.Fault{Reason: "refused", Permanent: true, Code: 550, Status: "5.1.1"}
		m.fails = map[string]error{
			"nobody@example.com": fmt.Errorf("%w: 550 nobody@example.com", refused), "payer@example.com": &mail.Fault{Reason: "away", Code: 450},
		}
		_, log, end := post(t, queuetest.NewTable(), b, m, "one")
		time.Sleep(4 * time.Second)
		if m.tries(never) != 1 || b.end(never) != movement.MailDead || m.tries(away) != 1 {
			t.Errorf("tries %d and %d, ended %q", m.tries(never), m.tries(away), b.end(never))
		}
		time.Sleep(72 * time.Hour)
		if n := m.tries(away); n != 11 || b.end(away) != movement.MailDead {
			t.Errorf("a server that is away for ever is asked %d times, %q", n, b.end(away))
		}
		back := b.add("payer@example.com")
		time.Sleep(10 * time.Minute)
		m.say("payer@example.com", nil)
		time.Sleep(time.Hour)
		if b.end(back) != movement.MailSent {
			t.Errorf("a server that came back: %q", b.end(back))
		}
		b.mu.Lock()
		faults := fmt.Sprint(b.faults)
		b.mu.Unlock()
		for _, fault := range []string{"refused (SMTP 550, 5.1.1)", "away (SMTP 450)"} {
			if !strings.Contains(faults, fault) || log.Count(strconv.Quote(fault)) == 0 {
				t.Errorf("%q is not kept or not logged: %s\n%s", fault, faults, log)
			}
		}
		if strings.Contains(faults, "@") || log.Count("@") > 0 {
			t.Errorf("the payer's address is kept or logged: %s\n%s", faults, log)
		}
		b.mu.Lock()
		b.err = queuetest.ErrAway
		b.mu.Unlock()
		again := b.add("other@example.com")
		time.Sleep(5 * time.Second)
		b.mu.Lock()
		b.err = nil
		b.mu.Unlock()
		time.Sleep(5 * time.Second)
		if m.tries(again) < 2 || b.end(again) != movement.MailSent {
			t.Errorf("a try that could not be written: %d tries, %q", m.tries(again), b.end(again))
		}
		end()
	})
}

// TestADatabaseThatIsOnlyReadSendsNoCopiesWithoutEnd, however many mails wait and
// however often somebody commits one more; all are sent when it can be written.
func TestADatabaseThatIsOnlyReadSendsNoCopiesWithoutEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const page, mails, reads = 50, 150, 12 // a read each 5 s of a minute
		b, m, leases := newBag(), &mailServer{takes: 50 * time.Millisecond}, queuetest.NewTable()
		b.err = queuetest.ErrAway
		for i := range mails {
			b.add(fmt.Sprintf("payer%d@example.com", i))
		}
		p, log, end := post(t, leases, b, m, "one")
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			p.Wake()
		}
		if all, most := m.handed(); all < 2*page || all > reads*page || most > reads {
			t.Errorf("%d mails were handed over in a minute, one %d times", all, most)
		}
		if log.Count("record an attempt") == 0 {
			t.Error("nothing is said of it")
		}
		stopped := time.Now()
		end()
		if took := time.Since(stopped); took > 0 {
			t.Errorf("it stopped only after %s", took)
		}
		b.err = nil
		_, before := m.handed()
		_, _, end = post(t, leases, b, m, "other")
		time.Sleep(20 * time.Second)
		if sent, dead := b.ends(); sent != mails || dead != 0 {
			t.Errorf("%d sent, %d dead", sent, dead)
		}
		if _, most := m.handed(); most > before+1 {
			t.Errorf("a mail was sent %d times in all, %d times of them in vain at most", most, before)
		}
		end()
	})
}

// TestNoOtherErrorIsKept: what is no fault of a mail may hold a server's words. It
// is neither kept nor logged, wherever it stands beside a fault.
func TestNoOtherErrorIsKept(t *testing.T) {
	t.Parallel()
	fault := &mail.Fault{Reason: "refused", Code: 550}
	for _, words := range []string{"550 5.1.1 budi.santoso: no such user", `550 "budi.santoso" unknown`, "550 budi.santoso%40example.com", "550 no\x00such\tuser"} {
		for want, err := range map[string]error{
			"the mail could not be sent": errors.New(words),
			"refused (SMTP 550)":         fmt.Errorf("%s: %w", words, fault),
		} {
			synctest.Test(t, func(t *testing.T) {
				const payer = "budi.santoso@example.com"
				b, m := newBag(), &mailServer{fails: map[string]error{payer: err}}
				b.add(payer)
				_, log, end := post(t, queuetest.NewTable(), b, m, "one")
				synctest.Wait()
				end()
				if len(b.faults) != 1 || b.faults[0] != want || log.Count("error="+strconv.Quote(want)) != 1 || log.Count("budi") > 0 || log.Count("user") > 0 {
					t.Errorf("%s is kept as %q, want %q, and logged as %s", words, b.faults, want, log)
				}
			})
		}
	}
}

func TestAnOutboxIsWoken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, m := newBag(), &mailServer{}
		p, _, end := post(t, queuetest.NewTable(), b, m, "one")
		time.Sleep(100 * time.Millisecond)
		id := b.add("payer@example.com")
		p.Wake()
		time.Sleep(100 * time.Millisecond)
		if m.tries(id) != 1 {
			t.Error("a mail waits for the next read")
		}
		end()
	})
}
