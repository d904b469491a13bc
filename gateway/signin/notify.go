package signin

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/mail"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// notification is what a merchant's people are mailed, at most once a day: of callbacks in all, because
// a merchant may name any number of receivers, and of each key.
type notification struct {
	text  string // in texts
	owner movement.Owner
	about string             // the key
	may   tenants.Permission // of those who are mailed
	page  string             // of the console, where they act
	from  tenants.Origin

	values mail.Values
}

// id is the same for all of the same on one day (UTC).
func (n notification) id(now time.Time) string {
	return fmt.Sprintf("%s %s %s %s %s", n.text, n.owner.MerchantID, n.owner.Mode, n.about, now.UTC().Format(time.DateOnly))
}

// notificationIDs is the namespace of the ids of their mails, so that no two replicas send one twice.
var notificationIDs = uuid.MustParse("3a1d5c0a-7d3f-4f0e-9b55-1f2a6f3f0b61")

// mostNotified bounds what is remembered as mailed. What is forgotten is asked of the database.
const mostNotified = 10_000

// begin tells whether nobody was mailed a notification yet, as far as this replica knows, and remembers it.
func (s *SignIn) begin(n notification) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := n.id(s.now())
	if s.notified[id] {
		return false
	}
	if len(s.notified) >= mostNotified {
		clear(s.notified)
	}
	s.notified[id] = true
	return true
}

// forget has a notification mailed when it comes again.
func (s *SignIn) forget(n notification) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.notified, n.id(s.now()))
}

// notify mails those of a merchant's people who may do something about it.
func (s *SignIn) notify(ctx context.Context, n notification) (err error) {
	defer func() {
		if err != nil {
			s.forget(n)
			err = fmt.Errorf("signin: mail a merchant's people: %w", err)
		}
	}()
	id := tenants.MerchantID(n.owner.MerchantID)
	members, err := s.store.MembersOf(ctx, id)
	if err != nil {
		return err
	}
	place, err := s.nameOf(ctx, id)
	if err != nil {
		return err
	}
	console, err := s.console(id)
	if err != nil {
		return err
	}
	n.values["Place"], n.values["Link"] = place, console+"/"+n.owner.MerchantID+"/"+n.owner.Mode+n.page
	if n.owner.Mode == string(tenants.Test) {
		n.values["Test"] = "test"
	}
	var mails []movement.Mail
	for _, m := range members {
		if m.Role.May(n.may) {
			one := uuid.NewSHA1(notificationIDs, []byte(n.id(s.now())+" "+m.PersonID.String()))
			mails = append(mails, s.composeAs(tenants.From(ctx, n.from), one, n.text, m.Language, m.Email, n.values)...)
		}
	}
	if err := s.store.Mail(ctx, n.owner, s.now(), mails...); err != nil {
		return err
	}
	s.committed(mails)
	return nil
}

// notifies tells whether merchants' people are mailed: without a console there is nothing
// that they could do about it, and no link for the mail.
func (s *SignIn) notifies() bool { return s.Mails() && s.links.Merchants != "" }

// CallbackDead mails a merchant's developers and owners that a callback about a movement has
// ended undelivered. It is called before that is written: what is not written after it ends,
// and is reported, again, and nobody is mailed twice.
func (s *SignIn) CallbackDead(ctx context.Context, c movement.Callback, reason string) error {
	receiver, err := url.Parse(c.URL)
	if err != nil || !s.notifies() || c.MovementID == (movement.ID{}) { // who sends a test looks at it
		return nil //nolint:nilerr // no callback was ever sent there
	}
	n := notification{
		text: "callbacks", owner: c.Owner, may: tenants.MayCallback, page: "/callbacks",
		values: mail.Values{"Host": receiver.Host, "Event": c.Event, "Reason": reason},
	}
	if !s.begin(n) {
		return nil
	}
	return s.notify(ctx, n)
}

// KeyRefused mails a merchant's developers and owners that a right key was refused: it is
// revoked or expired, or may not be used from there. The caller does not wait: Run mails it.
func (s *SignIn) KeyRefused(id tenants.Identity, from netip.Addr, why error) {
	if !s.notifies() {
		return
	}
	key := id.Key
	n := notification{
		text: "key", owner: movement.Owner{MerchantID: string(key.MerchantID), Mode: string(key.Mode)}, about: string(key.ID), may: tenants.MayKeys, page: "/keys",
		from: tenants.Origin(from.String()), values: mail.Values{"Key": string(key.ID), "Why": map[bool]string{true: "address"}[errors.Is(why, tenants.ErrAddress)]},
	}
	if !s.begin(n) {
		return
	}
	select {
	case s.pending <- n:
	default:
		s.forget(n)
		s.log.Warn("a refused key is not mailed: too many wait", "key", string(key.ID))
	}
}

// reportKey mails about a refused key.
func (s *SignIn) reportKey(ctx context.Context, n notification) error {
	err := s.notify(ctx, n)
	if err != nil {
		s.log.WarnContext(ctx, "a refused key is not mailed", "key", n.about, "error", err)
	}
	return err
}
