package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func receiptMail() *movement.Mail {
	return &movement.Mail{ID: uuid.New(), To: "payer@example.com", Subject: "Receipt", Text: "Thank you.\n"}
}

func dueMails(tb testing.TB, s *store.Store, since, now time.Time) []movement.QueuedMail {
	tb.Helper()
	mails, err := s.DueMails(tb.Context(), buckets, since, now, 100)
	if err != nil {
		tb.Fatal(err)
	}
	return mails
}

// TestAMailIsWrittenInTheCommitOfItsMove: with the move, once, or not at all.
func TestAMailIsWrittenInTheCommitOfItsMove(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	m := reserve(t, s, draft("INV/1"))
	change := move(m, movement.Succeeded)
	change.Mail = receiptMail()
	moved(t, s, change)
	again := change
	again.Mail = receiptMail()
	if ok, err := apply(t.Context(), s, epoch.Add(2*time.Second), again); ok || err != nil {
		t.Fatalf("moved again: %t, %v", ok, err)
	}
	moved(t, s, move(reserve(t, s, draft("INV/2")), movement.Succeeded))
	if early := dueMails(t, s, time.Time{}, epoch); len(early) > 0 {
		t.Errorf("due before the move: %+v", early)
	}
	got := dueMails(t, s, time.Time{}, epoch.Add(time.Hour))
	want := movement.QueuedMail{Mail: *change.Mail, Owner: m.Owner, MovementID: m.ID, CreatedAt: epoch.Add(time.Second)}
	if len(got) != 1 || got[0] != want {
		t.Errorf("due %+v, want %+v", got, want)
	}
	if since := dueMails(t, s, epoch.Add(time.Minute), epoch.Add(time.Hour)); len(since) > 0 {
		t.Errorf("due before the lower bound: %+v", since)
	}
}

// TestTriesOfAMail are counted, and guard one another; its address and text are kept
// for as long as it is tried.
func TestTriesOfAMail(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{})
	change := move(reserve(t, s, draft("INV/1")), movement.Succeeded)
	change.Mail = receiptMail()
	moved(t, s, change)
	now := epoch.Add(time.Minute)
	first := dueMails(t, s, time.Time{}, now)[0]
	later := movement.MailAttempt{Mail: first, At: now, Fault: "away", Then: movement.MailWaiting, DueAt: now.Add(time.Hour)}
	if ours, err := s.RecordMail(t.Context(), later); !ours || err != nil {
		t.Fatal(ours, err)
	}
	if ours, err := s.RecordMail(t.Context(), later); ours || err != nil {
		t.Errorf("two replicas have written the same try: %t, %v", ours, err)
	}
	if early := dueMails(t, s, time.Time{}, now); len(early) > 0 {
		t.Errorf("due before its next try: %+v", early)
	}
	second := dueMails(t, s, time.Time{}, now.Add(time.Hour))[0]
	if second.Attempts != 1 || second.To != first.To || second.Text != first.Text {
		t.Errorf("the second try: %+v", second)
	}
	if ours, err := s.RecordMail(t.Context(), movement.MailAttempt{Mail: second, At: now, Then: movement.MailSent}); !ours || err != nil {
		t.Fatal(ours, err)
	}
	if left := dueMails(t, s, time.Time{}, now.Add(24*time.Hour)); len(left) > 0 {
		t.Errorf("due after it was sent: %+v", left)
	}
	second.Attempts++
	if ours, err := s.RecordMail(t.Context(), movement.MailAttempt{Mail: second, At: now, Then: movement.MailDead}); ours || err != nil {
		t.Errorf("a mail that was sent is dead: %t, %v", ours, err)
	}
	execute(t, url, `ALTER TABLE mails ADD CONSTRAINT forgotten CHECK (recipient = '' AND subject = '' AND body = '')`) // or it fails
}

// TestMailsWithLinksGoFirst: somebody waits for them, however many others are due.
func TestMailsWithLinksGoFirst(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	owner := movement.Owner{MerchantID: string(tenants.Platform)}
	until := epoch.Add(time.Hour)
	for i := range 120 {
		if err := s.Mail(t.Context(), owner, epoch.Add(time.Duration(i)*time.Millisecond), *receiptMail()); err != nil {
			t.Fatal(err)
		}
	}
	link := *receiptMail()
	link.Until = until
	if err := s.Mail(t.Context(), owner, epoch.Add(time.Minute), link); err != nil {
		t.Fatal(err)
	}
	due := dueMails(t, s, time.Time{}, epoch.Add(2*time.Minute))
	if len(due) != 100 || due[0].ID != link.ID || !due[0].Until.Equal(until) || due[1].CreatedAt != epoch {
		t.Errorf("%d due, the first %+v, then %+v", len(due), due[0], due[1])
	}
}
