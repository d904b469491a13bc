package signin

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"
	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/mail"
	"github.com/seed-f006e74d/gerbang/tenants"
)

const (
	// InvitationLife is how long an invitation is good for.
	InvitationLife = 7 * 24 * time.Hour
	// shortest and longest are the lengths of passwords, in characters.
	shortest, longest = 12, 200

	mostFailures = 10
	failureWait  = time.Minute
	turnWait     = 2 * time.Second

	mostRefusals = 1000            // that wait to be audited
	workWait     = 5 * time.Second // for each thing that Run does, and for all that waits at its end
)

// coresAHash is how many cores there are for each password that is checked at a time: the
// others are the API's. Each takes 64 MiB.
const coresAHash = 4

// hashParams are argon2id's: on one core, not on all that there are.
var hashParams = argon2id.Params{Memory: 64 << 10, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// Vault seals second factors, and what is kept of people for a while.
type Vault interface {
	mail.Vault
	SealTOTP(person string, secret []byte) ([]byte, error)
	OpenTOTP(person string, sealed []byte) ([]byte, error)
}

// Failures slows addresses that fail often.
type Failures interface {
	Record(now time.Time, addr netip.Addr) (blocked bool, retryAfter time.Duration)
	Blocked(now time.Time, addr netip.Addr) bool
}

// SignIn lets people in. It is safe for concurrent use.
type SignIn struct {
	store    Store
	vault    Vault
	failures Failures
	asks     Failures
	now      func() time.Time
	log      *slog.Logger
	hashing  chan struct{}
	params   argon2id.Params
	nobody   func() (string, error) // a password's hash, for addresses that nobody has; made by whoever signs in first, since most programs end before
	refused  chan refused           // each once, as long as it waits
	mu       sync.Mutex
	waiting  map[refused]refusal

	links     Links
	mailed    func()
	forgotten chan asked
	pending   chan notification
	notified  map[string]bool // guarded by mu
}

// Dependencies are what a SignIn works with.
type Dependencies struct {
	Store    Store
	Vault    Vault
	Failures Failures // of those who sign in
	Asks     Failures // for new passwords: nobody is kept from their sign-in by them
	Links    Links
	Mailed   func() // called after mails were committed; nil where none can be sent, and none is made
	Now      func() time.Time
	Log      *slog.Logger
	// HashMemory is how many KiB hashing a password takes, for tests; 0 for what people's passwords need.
	HashMemory uint32
}

// New makes a SignIn.
func New(d Dependencies) *SignIn {
	s := &SignIn{
		store: d.Store, vault: d.Vault, failures: d.Failures, asks: d.Asks, links: d.Links, mailed: d.Mailed, now: d.Now, log: d.Log,
		hashing: make(chan struct{}, max(1, runtime.NumCPU()/coresAHash)), refused: make(chan refused, mostRefusals), waiting: map[refused]refusal{},
		forgotten: make(chan asked, mostAsked), pending: make(chan notification, mostAsked), notified: map[string]bool{}, params: hashParams,
	}
	s.params.Memory = cmp.Or(d.HashMemory, s.params.Memory)
	s.nobody = sync.OnceValues(func() (string, error) { return argon2id.CreateHash(rand.Text(), &s.params) })
	return s
}

// Try lets somebody in by address, password and code, or is ErrRefused or ErrTooMany.
// Whether an email address is known can't be told from the answer, nor from its time: a
// wrong password counts for where it comes from alone, so that nobody can lock a person
// out who has the right one.
func (s *SignIn) Try(ctx context.Context, browser Browser, from netip.Addr, address, password, code string) (tenants.Person, error) {
	if s.failures.Blocked(s.now(), from) {
		return tenants.Person{}, ErrTooMany
	}
	hash, err := s.nobody()
	if err != nil {
		return tenants.Person{}, err
	}
	address, _ = Email(address)
	person, err := s.store.PersonByEmail(ctx, address)
	known := err == nil
	if err != nil && !errors.Is(err, tenants.ErrNotFound) {
		return tenants.Person{}, err
	}
	if known {
		hash = person.Password
	}
	right, err := s.matches(ctx, password, hash)
	if err != nil {
		return tenants.Person{}, err
	}
	if !known || !right {
		if known {
			s.refuse(ctx, person, "wrong password")
		}
		return tenants.Person{}, s.failed(from)
	}
	if err := s.Confirm(ctx, from, person, code); err != nil {
		return tenants.Person{}, err
	}
	return person, s.entered(ctx, person, browser, "")
}

// Confirm takes a code of somebody, each once: a time-based one or a recovery code. The
// attempt is counted before it is judged, so that many at once are no more guesses.
func (s *SignIn) Confirm(ctx context.Context, from netip.Addr, p tenants.Person, code string) error {
	if s.failures.Blocked(s.now(), from) {
		return ErrTooMany
	}
	may, err := s.store.TakeAttempt(ctx, p.ID, s.now(), mostFailures, failureWait)
	if err != nil {
		return err
	}
	if !may {
		s.refuse(ctx, p, "too many wrong codes")
		return ErrTooMany
	}
	used, err := s.use(ctx, p, code)
	if err != nil {
		return err
	}
	if !used {
		s.refuse(ctx, p, "wrong code")
		return s.failed(from)
	}
	return s.store.ForgetSignInFailures(ctx, p.ID)
}

func (s *SignIn) use(ctx context.Context, p tenants.Person, code string) (bool, error) {
	if !looksLikeTOTP(code) {
		return s.store.UseRecoveryCode(ctx, p, recoveryHash(code), s.now())
	}
	secret, err := s.vault.OpenTOTP(p.ID.String(), p.TOTP)
	if err != nil {
		return false, err
	}
	step := stepOf(string(secret), code, s.now())
	if step == 0 {
		return false, nil
	}
	return s.store.UseStep(ctx, p.ID, step)
}

// Vouched is the operator whom an identity provider has proven, by the verified address and
// by the account there that they have linked: another one, though of the same address, opens
// nothing.
func (s *SignIn) Vouched(ctx context.Context, browser Browser, address, account string) (tenants.Person, error) {
	person, err := s.vouched(ctx, address, account)
	if err != nil {
		return tenants.Person{}, err
	}
	return person, s.entered(ctx, person, browser, "by the identity provider")
}

// VouchedAgain is Vouched for who has signed in before and gives a fresh proof.
func (s *SignIn) VouchedAgain(ctx context.Context, address, account string) error {
	person, err := s.vouched(ctx, address, account)
	if err != nil {
		return err
	}
	return s.store.NoteSignIn(ctx, person, "signin.confirm", "by the identity provider", s.now())
}

func (s *SignIn) vouched(ctx context.Context, address, account string) (tenants.Person, error) {
	address, err := Email(address)
	if err != nil {
		return tenants.Person{}, ErrStranger
	}
	person, err := s.store.PersonByEmail(ctx, address)
	if errors.Is(err, tenants.ErrNotFound) {
		return tenants.Person{}, ErrStranger
	}
	if err != nil {
		return tenants.Person{}, err
	}
	members, err := s.store.MembershipsOf(ctx, person.ID)
	if err != nil {
		return tenants.Person{}, err
	}
	if _, operator := (Present{person, members}).At(tenants.Platform); !operator {
		s.refuse(ctx, person, "by the identity provider: no operator")
		return tenants.Person{}, ErrStranger
	}
	switch person.Linked {
	case account:
		return person, nil
	case "":
		s.refuse(ctx, person, "by the identity provider: no account is linked")
		return tenants.Person{}, ErrUnlinked
	default:
		s.refuse(ctx, person, "by the identity provider: another account there")
		return tenants.Person{}, ErrAnother
	}
}

// Link makes an account at an identity provider somebody's, who has just given a code of
// their own. It must prove their address.
func (s *SignIn) Link(ctx context.Context, p tenants.Person, address, account string) error {
	if address, err := Email(address); err != nil || address != p.Email || account == "" {
		return ErrAnother
	}
	linked, err := s.store.Link(ctx, p, account, s.now())
	if err == nil && !linked {
		return ErrAnother
	}
	return err
}

// Unlink ends that an account at an identity provider is somebody's.
func (s *SignIn) Unlink(ctx context.Context, p tenants.Person) error {
	return s.store.Unlink(ctx, p, s.now())
}

// Left audits that somebody has signed out.
func (s *SignIn) Left(ctx context.Context, p tenants.Person) error {
	return s.store.NoteSignIn(ctx, p, "signin.out", "", s.now())
}

// refused is whose sign-in was refused, and why.
type refused struct {
	person uuid.UUID
	why    string
}

// refusal is the last one of a kind and how many there were.
type refusal struct {
	person tenants.Person
	times  int64
	at     time.Time
	from   tenants.Origin
}

// refuse has a refused sign-in audited by Run, so that the answer takes no longer than
// where nobody is known. What waits already is counted, so that no flood keeps others out.
func (s *SignIn) refuse(ctx context.Context, p tenants.Person, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := refused{p.ID, why}
	earlier, waits := s.waiting[kind]
	if !waits {
		select {
		case s.refused <- kind:
		default:
			s.log.WarnContext(ctx, "a refused sign-in is not audited: too many wait", "person", p.ID.String(), "why", why)
			return
		}
	}
	s.waiting[kind] = refusal{p, earlier.times + 1, s.now(), tenants.OriginOf(ctx)}
}

// Run audits refused sign-ins, and mails links to new passwords and refused keys, until the
// context ends, and then drains what still waits.
func (s *SignIn) Run(ctx context.Context) error {
	within := func(do func(context.Context) error) { // also while the gateway stops
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), workWait)
		defer cancel()
		_ = do(ctx) // it is logged
	}
	for ctx.Err() == nil {
		select {
		case kind := <-s.refused:
			within(func(ctx context.Context) error { return s.audit(ctx, kind) })
		case a := <-s.forgotten:
			within(func(ctx context.Context) error { return s.send(ctx, a) })
		case n := <-s.pending:
			within(func(ctx context.Context) error { return s.reportKey(ctx, n) })
		case <-ctx.Done():
		}
	}
	within(s.drain)
	return nil
}

// drain does what waits, audits first, all of it within one deadline and up to the first
// failure: a database that does not answer must not hold a stop.
func (s *SignIn) drain(ctx context.Context) error {
	for {
		var err error
		switch {
		case len(s.refused) > 0:
			err = s.audit(ctx, <-s.refused)
		case len(s.forgotten) > 0:
			err = s.send(ctx, <-s.forgotten)
		case len(s.pending) > 0:
			err = s.reportKey(ctx, <-s.pending)
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// audit keeps refusals of a kind.
func (s *SignIn) audit(ctx context.Context, kind refused) error {
	s.mu.Lock()
	r := s.waiting[kind]
	delete(s.waiting, kind)
	s.mu.Unlock()
	err := s.store.NoteRefusal(tenants.From(ctx, r.from), r.person, kind.why, r.times, r.at)
	if err != nil {
		s.log.WarnContext(ctx, "a refused sign-in is not audited", "person", kind.person.String(), "why", kind.why, "error", err)
	}
	return err
}

// failed counts a failure of an address and says what it is answered with.
func (s *SignIn) failed(from netip.Addr) error {
	if blocked, _ := s.failures.Record(s.now(), from); blocked {
		return ErrTooMany
	}
	return ErrRefused
}

// matches compares a password.
func (s *SignIn) matches(ctx context.Context, password, hash string) (bool, error) {
	if utf8.RuneCountInString(password) > longest {
		return false, nil
	}
	done, err := s.turn(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	return argon2id.ComparePasswordAndHash(password, hash)
}

// turn waits a moment until a password may be hashed: some are at a time, each on one core,
// so that the consoles never take the machine from the API.
func (s *SignIn) turn(ctx context.Context) (done func(), err error) {
	wait := time.NewTimer(turnWait)
	defer wait.Stop()
	select {
	case s.hashing <- struct{}{}:
		return func() { <-s.hashing }, nil
	case <-wait.C:
		return nil, ErrBusy
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// hashed makes what is kept of a new password, or says what is wrong with it.
func (s *SignIn) hashed(ctx context.Context, password string) (string, error) {
	if n := utf8.RuneCountInString(password); n < shortest || n > longest {
		return "", fault.Invalid("password", "must have 12 to 200 characters")
	}
	done, err := s.turn(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	return argon2id.CreateHash(password, &s.params)
}

// invitation draws one.
func (s *SignIn) invitation(by string, to tenants.MerchantID, role tenants.Role, address string) (secret string, i tenants.Invitation, err error) {
	if !slices.Contains(tenants.RolesOf(to), role) {
		return "", i, fault.Invalid("role", fmt.Sprintf("must be one of %v", tenants.RolesOf(to)))
	}
	if address, err = Email(address); err != nil {
		return "", i, fault.Invalid("email", "must be an email address")
	}
	secret, hash := drawn()
	return secret, tenants.Invitation{Hash: hash, MerchantID: to, Role: role, Email: address, By: by, ExpiresAt: s.now().Add(InvitationLife)}, nil
}

// Invitation finds one by its secret. Known tells whether the person that is invited has
// signed in here before. By is empty where an operator invites to a merchant.
func (s *SignIn) Invitation(ctx context.Context, secret string) (i tenants.Invitation, known bool, err error) {
	if !secretForm.MatchString(secret) { // nothing is read for what can be no secret
		return tenants.Invitation{}, false, ErrInvitation
	}
	i, err = s.store.Invitation(ctx, sha256.Sum256([]byte(secret)))
	switch {
	case errors.Is(err, tenants.ErrNotFound), err == nil && !s.now().Before(i.ExpiresAt):
		return tenants.Invitation{}, false, ErrInvitation
	case err != nil:
		return tenants.Invitation{}, false, err
	}
	if i.By, err = s.inviter(ctx, i); err != nil {
		return tenants.Invitation{}, false, err
	}
	_, err = s.store.PersonByEmail(ctx, i.Email)
	if err != nil && !errors.Is(err, tenants.ErrNotFound) {
		return tenants.Invitation{}, false, err
	}
	return i, err == nil, nil
}

// Newcomer is what somebody who was invited says of themselves.
type Newcomer struct {
	Name, Password, Code string
	Factor               []byte // sealed
	Language             string // of the browser with which they join
}

// Accept makes a member of somebody new. The recovery codes are FreshCodes, too.
func (s *SignIn) Accept(ctx context.Context, secret string, n Newcomer) (tenants.Person, []string, error) {
	i, known, err := s.Invitation(ctx, secret)
	if err != nil {
		return tenants.Person{}, nil, err
	}
	if known {
		return tenants.Person{}, nil, fault.Invalid("email", "belongs to somebody who can sign in already: sign in and open the link again")
	}
	if length := utf8.RuneCountInString(n.Name); length < 1 || length > 100 {
		return tenants.Person{}, nil, fault.Invalid("name", "must have 1 to 100 characters")
	}
	totpSecret, step, err := s.proven(i.Email, n.Factor, n.Code)
	if err != nil {
		return tenants.Person{}, nil, err
	}
	p := tenants.Person{ID: uuid.New(), Email: i.Email, Name: n.Name, Step: step, Epoch: 1, CreatedAt: s.now(), Language: cmp.Or(n.Language, mail.Indonesian)}
	if p.Password, err = s.hashed(ctx, n.Password); err != nil {
		return tenants.Person{}, nil, err
	}
	if p.TOTP, err = s.vault.SealTOTP(p.ID.String(), totpSecret); err != nil {
		return tenants.Person{}, nil, err
	}
	shown, kept := newRecoveryCodes()
	if p.FreshCodes, err = s.sealedCodes(p.ID, shown); err != nil {
		return tenants.Person{}, nil, err
	}
	if _, err = s.store.AcceptNew(ctx, i.Hash, p, kept); err != nil {
		return tenants.Person{}, nil, invitationGone(err)
	}
	return p, shown, nil
}

// proven opens a second factor that is being set up, whose app shows a code.
func (s *SignIn) proven(email string, sealed []byte, code string) (secret []byte, step int64, err error) {
	if secret, err = s.vault.OpenTOTP(beingSetUp(email), sealed); err != nil {
		return nil, 0, fault.Invalid("code", "is of a second factor that was not begun here; open the page again")
	}
	if step = stepOf(string(secret), code, s.now()); step == 0 {
		return nil, 0, fault.Invalid("code", "is not the one that the app shows now; check the phone's clock")
	}
	return secret, step, nil
}

// Join makes a member of somebody who has signed in.
func (s *SignIn) Join(ctx context.Context, secret string, p tenants.Person) (tenants.Invitation, error) {
	i, _, err := s.Invitation(ctx, secret)
	if err != nil {
		return tenants.Invitation{}, err
	}
	if i.Email != p.Email {
		return tenants.Invitation{}, ErrInvitation
	}
	i, err = s.store.AcceptKnown(ctx, i.Hash, p.ID, p.Email, s.now())
	return i, invitationGone(err)
}

func invitationGone(err error) error {
	if errors.Is(err, tenants.ErrNotFound) {
		return ErrInvitation
	}
	return err
}

// ChangePassword sets another password and ends all of the person's sessions.
func (s *SignIn) ChangePassword(ctx context.Context, p tenants.Person, password string) error {
	hash, err := s.hashed(ctx, password)
	if err != nil {
		return err
	}
	mails := s.compose(ctx, "password", p.Language, p.Email, mail.Values{})
	if err := s.store.SetPassword(ctx, p, hash, s.now(), mails...); err != nil {
		return err
	}
	s.committed(mails)
	return nil
}

// ChangeFactor sets another second factor, whose app shows a code, and ends all of the
// person's sessions. The recovery codes stay.
func (s *SignIn) ChangeFactor(ctx context.Context, p tenants.Person, sealed []byte, code string) error {
	secret, step, err := s.proven(p.Email, sealed, code)
	if err != nil {
		return err
	}
	kept, err := s.vault.SealTOTP(p.ID.String(), secret)
	if err != nil {
		return err
	}
	mails := s.compose(ctx, "factor", p.Language, p.Email, mail.Values{})
	if err := s.store.SetFactor(ctx, p, kept, step, s.now(), mails...); err != nil {
		return err
	}
	s.committed(mails)
	return nil
}

// NewRecoveryCodes replaces somebody's codes by those that FreshCodes then shows.
func (s *SignIn) NewRecoveryCodes(ctx context.Context, p tenants.Person) ([]string, error) {
	shown, kept := newRecoveryCodes()
	sealed, err := s.sealedCodes(p.ID, shown)
	if err != nil {
		return nil, err
	}
	return shown, s.store.SetRecoveryCodes(ctx, p, kept, sealed, s.now())
}

// RecoveryCodes counts the codes that somebody has left.
func (s *SignIn) RecoveryCodes(ctx context.Context, p tenants.Person) (int, error) {
	return s.store.RecoveryCodes(ctx, p.ID)
}

// Present is somebody who has signed in, as of now.
type Present struct {
	Person  tenants.Person
	Members []tenants.Member
}

// Who finds somebody by a session's word: the person and the epoch of when it began. It is
// tenants.ErrNotFound where the session has ended since.
func (s *SignIn) Who(ctx context.Context, id uuid.UUID, epoch int64) (Present, error) {
	person, err := s.store.PersonByID(ctx, id)
	if err != nil {
		return Present{}, err
	}
	if person.Epoch != epoch {
		return Present{}, tenants.ErrNotFound
	}
	members, err := s.store.MembershipsOf(ctx, id)
	return Present{person, members}, err
}

// At is what somebody is at a merchant, or at the platform.
func (p Present) At(id tenants.MerchantID) (tenants.Member, bool) {
	for _, m := range p.Members {
		if m.MerchantID == id {
			return m, true
		}
	}
	return tenants.Member{}, false
}

// SetRole gives a member another role, and Remove takes it away. Both end the person's
// sessions, and are ErrLastOwner where nobody else could invite.
func (s *SignIn) SetRole(ctx context.Context, by string, m tenants.Member) error {
	if !slices.Contains(tenants.RolesOf(m.MerchantID), m.Role) {
		return fault.Invalid("role", fmt.Sprintf("must be one of %v", tenants.RolesOf(m.MerchantID)))
	}
	return s.store.SetRole(ctx, by, m, s.now())
}

// Remove ends a membership.
func (s *SignIn) Remove(ctx context.Context, by string, m tenants.Member) error {
	return s.store.RemoveMember(ctx, by, m, s.now())
}

// Members lists the people of a merchant, or of the platform.
func (s *SignIn) Members(ctx context.Context, id tenants.MerchantID) ([]tenants.Member, error) {
	return s.store.MembersOf(ctx, id)
}
