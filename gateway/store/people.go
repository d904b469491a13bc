package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// forgiven is after how long without a failure the next one counts as the first.
const forgiven = time.Hour

// PersonByEmail finds a person by its address.
func (s *Store) PersonByEmail(ctx context.Context, email string) (tenants.Person, error) {
	row, err := s.queries.PersonByEmail(ctx, email)
	return personFromRow(row), unknownPerson("person", err)
}

// PersonByID finds a person.
func (s *Store) PersonByID(ctx context.Context, id uuid.UUID) (tenants.Person, error) {
	row, err := s.queries.PersonByID(ctx, id)
	return personFromRow(row), unknownPerson("person", err)
}

func personFromRow(row dbsqlc.Person) tenants.Person {
	return tenants.Person{
		ID: row.PersonID, Email: row.Email, Name: row.Name, Password: row.Password, TOTP: row.Totp, Step: row.TotpStep, Epoch: row.Epoch,
		Linked: row.VouchedAs, Language: row.Language, FreshCodes: row.FreshCodes, CreatedAt: row.CreatedAt.UTC(),
	}
}

// unknownPerson makes a missing row package tenants' word for it.
func unknownPerson(what string, err error) error {
	if errors.Is(err, pgx.ErrNoRows) || errors.Is(err, ErrNotFound) {
		return tenants.ErrNotFound
	}
	return wrap(what, err)
}

// UseStep takes a time step's code, and is false where it or a later one was taken.
func (s *Store) UseStep(ctx context.Context, id uuid.UUID, step int64) (bool, error) {
	rows, err := s.queries.UseStep(ctx, dbsqlc.UseStepParams{PersonID: id, TotpStep: step})
	return rows == 1, wrap("use step", err)
}

// UseRecoveryCode takes a recovery code, and is false where there is none such.
func (s *Store) UseRecoveryCode(ctx context.Context, p tenants.Person, code tenants.Hash, now time.Time) (bool, error) {
	err := s.own(ctx, p, Audit{Action: "signin.recovery_code", At: now}, func(q *dbsqlc.Queries) error {
		return found(q.UseRecoveryCode(ctx, dbsqlc.UseRecoveryCodeParams{PersonID: p.ID, Hash: code[:]}))
	})
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, wrap("use recovery code", err)
}

// RecoveryCodes counts the codes that are left.
func (s *Store) RecoveryCodes(ctx context.Context, id uuid.UUID) (int, error) {
	n, err := s.queries.CountRecoveryCodes(ctx, id)
	return int(n), wrap("recovery codes", err)
}

// SetRecoveryCodes replaces all codes, and keeps them sealed until KeptRecoveryCodes.
func (s *Store) SetRecoveryCodes(ctx context.Context, p tenants.Person, codes []tenants.Hash, sealed []byte, now time.Time) error {
	return wrap("set recovery codes", s.own(ctx, p, Audit{Action: "signin.recovery_codes", At: now}, func(q *dbsqlc.Queries) error {
		if err := q.DeleteRecoveryCodes(ctx, p.ID); err != nil {
			return err
		}
		if err := q.SetFreshCodes(ctx, dbsqlc.SetFreshCodesParams{PersonID: p.ID, FreshCodes: sealed}); err != nil {
			return err
		}
		return q.InsertRecoveryCodes(ctx, dbsqlc.InsertRecoveryCodesParams{PersonID: p.ID, Hashes: hashesOf(codes)})
	}))
}

func hashesOf(codes []tenants.Hash) [][]byte {
	hashes := make([][]byte, len(codes))
	for i := range codes {
		hashes[i] = codes[i][:]
	}
	return hashes
}

// TakeAttempt counts an attempt, and is false where there were too many of late.
func (s *Store) TakeAttempt(ctx context.Context, id uuid.UUID, now time.Time, most int, wait time.Duration) (bool, error) {
	rows, err := s.queries.TakeAttempt(ctx, dbsqlc.TakeAttemptParams{
		PersonID: id, FailedAt: micro(now), Forgotten: micro(now.Add(-forgiven)), Most: int64(most), Waited: micro(now.Add(-wait)),
	})
	return rows == 1, wrap("take sign-in attempt", err)
}

// ForgetSignInFailures begins to count anew.
func (s *Store) ForgetSignInFailures(ctx context.Context, id uuid.UUID) error {
	return wrap("forget sign-in failures", s.queries.ForgetSignInFailures(ctx, id))
}

// SetPassword stores another password and ends all sessions, and all links that would set one.
func (s *Store) SetPassword(ctx context.Context, p tenants.Person, password string, now time.Time, mails ...movement.Mail) error {
	return s.setPassword(ctx, p, password, Audit{Action: "signin.password", At: now}, nil, mails)
}

// ResetPassword is SetPassword by a link, which is used up by it.
func (s *Store) ResetPassword(ctx context.Context, hash tenants.Hash, p tenants.Person, password string, now time.Time, mails ...movement.Mail) error {
	return s.setPassword(ctx, p, password, Audit{Action: "signin.password", Detail: "by a link", At: now}, &hash, mails)
}

// setPassword uses a link up, if there is one.
func (s *Store) setPassword(ctx context.Context, p tenants.Person, password string, audit Audit, link *tenants.Hash, mails []movement.Mail) error {
	return unknownPerson("set password", s.own(ctx, p, audit, func(q *dbsqlc.Queries) error {
		ended, err := deleteResets(ctx, q, p.ID)
		if err != nil {
			return err
		}
		if link != nil && !slices.Contains(ended, *link) {
			return ErrNotFound
		}
		return found(q.SetPassword(ctx, dbsqlc.SetPasswordParams{PersonID: p.ID, Epoch: p.Epoch, Password: password}))
	}, mails...))
}

// deleteResets ends the links by which somebody sets another password; mails with one that
// still wait are not sent.
func deleteResets(ctx context.Context, q *dbsqlc.Queries, id uuid.UUID) ([]tenants.Hash, error) {
	rows, err := q.DeleteResets(ctx, id)
	ended, mails := make([]tenants.Hash, len(rows)), make([]*uuid.UUID, len(rows))
	for i, row := range rows {
		copy(ended[i][:], row)
		mails[i] = new(tenants.Reset{Hash: ended[i]}.MailID())
	}
	if err != nil {
		return nil, err
	}
	return ended, cancel(ctx, q, mails...)
}

// cancel has mails that still wait not sent: their link has ended.
func cancel(ctx context.Context, q *dbsqlc.Queries, mails ...*uuid.UUID) error {
	var ids []uuid.UUID
	for _, id := range mails {
		if id != nil {
			ids = append(ids, *id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return q.CancelMails(ctx, dbsqlc.CancelMailsParams{MailIds: ids, Fault: "the link in the mail has ended"})
}

// AddReset stores a link by which somebody sets another password, and is false where one was
// made at a time from which on another is too soon.
// It is audited as by whom is given: whoever asks has proven nothing, least of all to be the person.
func (s *Store) AddReset(ctx context.Context, by string, p tenants.Person, r tenants.Reset, soon, now time.Time, mails ...movement.Mail) (bool, error) {
	err := s.own(ctx, p, Audit{Operator: by, Action: "signin.reset", Detail: "somebody asked for a link for " + p.Email, At: now}, func(q *dbsqlc.Queries) error {
		if err := q.ForgetResets(ctx, micro(now)); err != nil {
			return err
		}
		life := r.ExpiresAt.Sub(now)
		if earlier, err := q.ResetsSince(ctx, dbsqlc.ResetsSinceParams{PersonID: p.ID, ExpiresAt: micro(soon.Add(life))}); err != nil || earlier > 0 {
			return errors.Join(err, ErrNotFound)
		}
		return q.InsertReset(ctx, dbsqlc.InsertResetParams{Hash: r.Hash[:], PersonID: p.ID, ExpiresAt: micro(r.ExpiresAt)})
	}, mails...)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, wrap("add reset", err)
}

// Reset reads a link that was not used.
func (s *Store) Reset(ctx context.Context, hash tenants.Hash) (tenants.Reset, error) {
	row, err := s.queries.Reset(ctx, hash[:])
	return tenants.Reset{Hash: hash, PersonID: row.PersonID, ExpiresAt: row.ExpiresAt.UTC()}, unknownPerson("reset", err)
}

// KeptRecoveryCodes forgets the codes that were to be shown until somebody has kept them.
func (s *Store) KeptRecoveryCodes(ctx context.Context, id uuid.UUID) error {
	return wrap("kept recovery codes", s.queries.SetFreshCodes(ctx, dbsqlc.SetFreshCodesParams{PersonID: id}))
}

// SetFactor stores another second factor, of which a code was just used, and ends all sessions.
func (s *Store) SetFactor(ctx context.Context, p tenants.Person, totp []byte, step int64, now time.Time, mails ...movement.Mail) error {
	return unknownPerson("set second factor", s.own(ctx, p, Audit{Action: "signin.factor", At: now}, func(q *dbsqlc.Queries) error {
		return found(q.SetFactor(ctx, dbsqlc.SetFactorParams{PersonID: p.ID, Epoch: p.Epoch, Totp: totp, TotpStep: step}))
	}, mails...))
}

// Link stores somebody's account at an identity provider, and is false where one is linked.
func (s *Store) Link(ctx context.Context, p tenants.Person, account string, now time.Time) (bool, error) {
	err := s.own(ctx, p, Audit{Action: "signin.linked", Detail: account, At: now}, func(q *dbsqlc.Queries) error {
		return found(q.LinkAccount(ctx, dbsqlc.LinkAccountParams{PersonID: p.ID, VouchedAs: account}))
	})
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, wrap("link", err)
}

// Unlink forgets somebody's account at an identity provider.
func (s *Store) Unlink(ctx context.Context, p tenants.Person, now time.Time) error {
	err := s.own(ctx, p, Audit{Action: "signin.unlinked", Detail: p.Linked, At: now}, func(q *dbsqlc.Queries) error {
		return found(q.UnlinkAccount(ctx, p.ID))
	})
	if errors.Is(err, ErrNotFound) { // it was earlier
		return nil
	}
	return wrap("unlink", err)
}

// NoteSignIn audits what somebody did with their sign-in.
func (s *Store) NoteSignIn(ctx context.Context, p tenants.Person, action, detail string, now time.Time, mails ...movement.Mail) error {
	return wrap("note sign-in", s.own(ctx, p, Audit{Action: action, Detail: detail, At: now}, func(*dbsqlc.Queries) error { return nil }, mails...))
}

// own runs a change of somebody's own sign-in, audited at placesOf them, as theirs unless
// the entry names another.
// The mails that tell of it are written with it.
func (s *Store) own(ctx context.Context, p tenants.Person, audit Audit, change func(*dbsqlc.Queries) error, mails ...movement.Mail) error {
	audit.Operator = cmp.Or(audit.Operator, p.Email)
	return s.within(ctx, serializable, func(tx pgx.Tx) error {
		q := dbsqlc.New(tx)
		if err := change(q); err != nil {
			return err
		}
		if err := mailed(ctx, tx, movement.Owner{MerchantID: string(tenants.Platform)}, audit.At, mails); err != nil {
			return err
		}
		places, err := placesOf(ctx, q, p.ID)
		if err != nil {
			return err
		}
		for _, id := range places {
			if err := audited(ctx, tx, s.auditing(originAt(ctx, id, places), audit, movement.Owner{MerchantID: id})); err != nil {
				return err
			}
		}
		return nil
	})
}

// placesOf are the merchants in whose audits somebody's sign-ins are: theirs, and the
// platform unless they belong to one merchant alone.
func placesOf(ctx context.Context, q *dbsqlc.Queries, id uuid.UUID) ([]string, error) {
	rows, err := q.MembershipsOf(ctx, id)
	ids := make([]string, 0, len(rows)+1)
	for _, row := range rows {
		ids = append(ids, row.MerchantID)
	}
	if len(ids) != 1 && !slices.Contains(ids, string(tenants.Platform)) {
		ids = append(ids, string(tenants.Platform))
	}
	return ids, err
}

// originAt leaves the origin to the platform where somebody belongs to several places: no
// merchant is told from where a person works for another one.
func originAt(ctx context.Context, id string, places []string) context.Context {
	if len(places) > 1 && id != string(tenants.Platform) {
		return tenants.From(ctx, "")
	}
	return ctx
}

// refusals is the namespace of the ids of refused sign-ins' entries. Gateways before MACs have
// another one, so that none of them counts an entry that has a MAC.
var refusals = uuid.MustParse("b0a4c3b2-3c0f-4b39-8f0e-6a5d1c7e2f90")

// NoteRefusal audits sign-ins that were refused so many times. Those of one person, for one reason, within an hour
// are one entry, with the last one's time and origin, so that a flood fills no table.
func (s *Store) NoteRefusal(ctx context.Context, p tenants.Person, why string, times int64, now time.Time) error {
	note := func(tx pgx.Tx) error {
		q := dbsqlc.New(tx)
		places, err := placesOf(ctx, q, p.ID)
		for _, id := range places {
			if err != nil {
				break
			}
			w := s.auditing(originAt(ctx, id, places), Audit{Operator: p.Email, Action: "signin.refused", Detail: why, At: now}, movement.Owner{MerchantID: id})
			w.audit = uuid.NewSHA1(refusals, fmt.Appendf(nil, "%s %s %s %d", id, p.ID, why, now.Truncate(time.Hour).Unix()))
			var before []int64
			w.times = times
			if before, err = q.AuditTimes(ctx, w.audit); err != nil {
				continue
			}
			if len(before) == 0 {
				err = audited(ctx, tx, w)
				continue
			}
			w.times += before[0]
			err = q.CountAudited(ctx, dbsqlc.CountAuditedParams{AuditID: w.audit, Times: w.times, At: w.now, Origin: string(w.origin), Mac: w.auditMAC()})
		}
		return err
	}
	err := s.within(ctx, serializable, note)
	if sameAs(err, "audit_pkey") { // another replica has begun the hour's entry
		err = s.within(ctx, serializable, note)
	}
	return wrap("note refused sign-in", err)
}

// mostInvitations is how many somebody may make at a merchant, or at the platform, in 24 hours,
// revoked ones too: each is a mail to an address of the inviter's choice.
const mostInvitations = 50

// Invite stores an invitation, in place of an earlier one of the same address. It is
// tenants.ErrManyInvitations where the inviter has made as many as one may.
func (s *Store) Invite(ctx context.Context, i tenants.Invitation, now time.Time, mails ...movement.Mail) error {
	audit := Audit{Operator: i.By, Action: "member.invite", Detail: fmt.Sprintf("%s as %s", i.Email, i.Role), At: now}
	return s.people(ctx, "invite", audit, i.MerchantID, func(_ pgx.Tx, q *dbsqlc.Queries) error {
		if _, err := q.MerchantByID(ctx, string(i.MerchantID)); err != nil {
			return err
		}
		made, err := q.AuditOf(ctx, dbsqlc.AuditOfParams{
			MerchantID: string(i.MerchantID), Since: micro(now.Add(-24 * time.Hour)), Until: micro(forever), Operator: i.By, Action: audit.Action, Most: mostInvitations,
		})
		if err != nil {
			return err
		}
		if len(made) == mostInvitations {
			return tenants.ErrManyInvitations
		}
		if err := q.ForgetInvitations(ctx, micro(now)); err != nil {
			return err
		}
		replaced, err := q.RevokeInvitations(ctx, dbsqlc.RevokeInvitationsParams{MerchantID: string(i.MerchantID), Email: i.Email})
		if err != nil {
			return err
		}
		if err := cancel(ctx, q, replaced...); err != nil {
			return err
		}
		row := dbsqlc.InsertInvitationParams{
			Hash: i.Hash[:], MerchantID: string(i.MerchantID), Role: string(i.Role), Email: i.Email, InvitedBy: i.By, ExpiresAt: micro(i.ExpiresAt),
		}
		if len(mails) > 0 {
			row.MailID = &mails[0].ID
		}
		return q.InsertInvitation(ctx, row)
	}, mails...)
}

// InvitationsOf lists those that were not used and are not over, the newest first.
func (s *Store) InvitationsOf(ctx context.Context, id tenants.MerchantID, now time.Time) ([]tenants.Invitation, error) {
	rows, err := s.queries.InvitationsOf(ctx, dbsqlc.InvitationsOfParams{MerchantID: string(id), Now: micro(now)})
	list := make([]tenants.Invitation, len(rows))
	for i, row := range rows {
		list[i] = tenants.Invitation{
			MerchantID: id, Role: tenants.Role(row.Role), Email: row.Email, By: row.InvitedBy, ExpiresAt: row.ExpiresAt.UTC(), Mail: row.Mail,
		}
	}
	return list, wrap("invitations", err)
}

// RevokeInvitation ends the invitation of an address.
func (s *Store) RevokeInvitation(ctx context.Context, by string, id tenants.MerchantID, email string, now time.Time) error {
	audit := Audit{Operator: by, Action: "member.uninvite", Detail: email, At: now}
	return s.people(ctx, "revoke invitation", audit, id, func(_ pgx.Tx, q *dbsqlc.Queries) error {
		revoked, err := q.RevokeInvitations(ctx, dbsqlc.RevokeInvitationsParams{MerchantID: string(id), Email: email})
		if err := found(int64(len(revoked)), err); err != nil {
			return err
		}
		return cancel(ctx, q, revoked...)
	})
}

// Invitation reads one that was not used.
func (s *Store) Invitation(ctx context.Context, hash tenants.Hash) (tenants.Invitation, error) {
	row, err := s.queries.Invitation(ctx, hash[:])
	return tenants.Invitation{
		Hash: hash, MerchantID: tenants.MerchantID(row.MerchantID), Role: tenants.Role(row.Role), Email: row.Email, By: row.InvitedBy, ExpiresAt: row.ExpiresAt.UTC(),
	}, unknownPerson("invitation", err)
}

// AcceptNew stores a person who was invited.
func (s *Store) AcceptNew(ctx context.Context, hash tenants.Hash, p tenants.Person, codes []tenants.Hash) (tenants.Invitation, error) {
	return s.accept(ctx, hash, p.ID, p.Email, p.CreatedAt, func(q *dbsqlc.Queries) error {
		if err := q.InsertPerson(ctx, dbsqlc.InsertPersonParams{
			PersonID: p.ID, Email: p.Email, Name: p.Name, Password: p.Password, Totp: p.TOTP, TotpStep: p.Step, CreatedAt: micro(p.CreatedAt),
			Language: p.Language, FreshCodes: p.FreshCodes,
		}); err != nil {
			return err
		}
		return q.InsertRecoveryCodes(ctx, dbsqlc.InsertRecoveryCodesParams{PersonID: p.ID, Hashes: hashesOf(codes)})
	})
}

// AcceptKnown makes a member of somebody by an invitation.
func (s *Store) AcceptKnown(ctx context.Context, hash tenants.Hash, id uuid.UUID, name string, now time.Time) (tenants.Invitation, error) {
	return s.accept(ctx, hash, id, name, now, func(*dbsqlc.Queries) error { return nil })
}

func (s *Store) accept(ctx context.Context, hash tenants.Hash, id uuid.UUID, name string, now time.Time, before func(*dbsqlc.Queries) error) (tenants.Invitation, error) {
	i, err := s.Invitation(ctx, hash)
	if err != nil {
		return i, err
	}
	audit := Audit{Operator: name, Action: "member.join", Detail: fmt.Sprintf("as %s, invited by %s", i.Role, i.By), At: now}
	err = s.people(ctx, "accept invitation", audit, i.MerchantID, func(_ pgx.Tx, q *dbsqlc.Queries) error {
		taken, err := q.TakeInvitation(ctx, hash[:])
		if err != nil {
			return err
		}
		if err := cancel(ctx, q, taken); err != nil {
			return err
		}
		if err := before(q); err != nil {
			return err
		}
		rows, err := q.InsertMember(ctx, dbsqlc.InsertMemberParams{MerchantID: string(i.MerchantID), PersonID: id, Role: string(i.Role), Since: micro(now)})
		if err == nil && rows == 0 {
			return tenants.ErrMember
		}
		return err
	})
	if sameAs(err, "people_email") {
		return i, tenants.ErrMember
	}
	return i, err
}

// sameAs tells whether another row has the value that a constraint wants to be unique.
func sameAs(err error, constraint string) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == duplicateKey && pgErr.ConstraintName == constraint
}

// MembersOf lists the people of a merchant, or of the platform.
func (s *Store) MembersOf(ctx context.Context, id tenants.MerchantID) ([]tenants.Member, error) {
	rows, err := s.queries.MembersOf(ctx, string(id))
	members := make([]tenants.Member, len(rows))
	for i, row := range rows {
		members[i] = tenants.Member{
			PersonID: row.PersonID, MerchantID: id, Role: tenants.Role(row.Role), Since: row.Since.UTC(), Email: row.Email, Name: row.Name, Language: row.Language,
		}
	}
	return members, wrap("members", err)
}

// MembershipsOf lists what somebody is at which merchants.
func (s *Store) MembershipsOf(ctx context.Context, id uuid.UUID) ([]tenants.Member, error) {
	rows, err := s.queries.MembershipsOf(ctx, id)
	members := make([]tenants.Member, len(rows))
	for i, row := range rows {
		members[i] = tenants.Member{
			PersonID: id, MerchantID: tenants.MerchantID(row.MerchantID), Role: tenants.Role(row.Role), Since: row.Since.UTC(),
			Merchant: row.Name, Suspended: row.Status != string(tenants.Active),
		}
	}
	return members, wrap("memberships", err)
}

// SetRole gives a member another role and ends its sessions.
func (s *Store) SetRole(ctx context.Context, by string, m tenants.Member, now time.Time) error {
	audit := Audit{Operator: by, Action: "member.role", Detail: fmt.Sprintf("%s becomes %s", m.Email, m.Role), At: now}
	return s.demote(ctx, "set role", audit, m, func(q *dbsqlc.Queries) (int64, error) {
		return q.SetRole(ctx, dbsqlc.SetRoleParams{MerchantID: string(m.MerchantID), PersonID: m.PersonID, Role: string(m.Role)})
	})
}

// RemoveMember ends a membership and the person's sessions.
func (s *Store) RemoveMember(ctx context.Context, by string, m tenants.Member, now time.Time) error {
	audit := Audit{Operator: by, Action: "member.remove", Detail: m.Email, At: now}
	return s.demote(ctx, "remove member", audit, m, func(q *dbsqlc.Queries) (int64, error) {
		return q.DeleteMember(ctx, dbsqlc.DeleteMemberParams{MerchantID: string(m.MerchantID), PersonID: m.PersonID})
	})
}

// demote changes what somebody is, unless nobody would be left who invites others.
func (s *Store) demote(ctx context.Context, what string, audit Audit, m tenants.Member, change func(*dbsqlc.Queries) (int64, error)) error {
	return s.people(ctx, what, audit, m.MerchantID, func(tx pgx.Tx, q *dbsqlc.Queries) error {
		if err := found(change(q)); err != nil {
			return err
		}
		left, err := q.MembersOf(ctx, string(m.MerchantID))
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(left, func(row dbsqlc.MembersOfRow) bool { return tenants.Invites(m.MerchantID, tenants.Role(row.Role)) }) {
			return tenants.ErrLastOwner
		}
		if err := q.EndSessions(ctx, m.PersonID); err != nil {
			return err
		}
		if slices.ContainsFunc(left, func(row dbsqlc.MembersOfRow) bool {
			return row.PersonID == m.PersonID && tenants.Invites(m.MerchantID, tenants.Role(row.Role))
		}) {
			return nil // what they have invited to stays theirs to do
		}
		if err := s.uninvite(ctx, tx, audit, m.MerchantID, m.Email, m.Email); err != nil || m.MerchantID != tenants.Platform {
			return err
		}
		return s.uninvite(ctx, tx, audit, everywhere, "", m.Email) // an operator may invite to every merchant
	})
}

// RemovePerson forgets somebody: password, second factor, recovery codes, memberships, and
// the invitations that they were sent or have made.
func (s *Store) RemovePerson(ctx context.Context, by, email string, now time.Time) error {
	person, err := s.PersonByEmail(ctx, email)
	if err != nil {
		return err
	}
	audit := Audit{Operator: by, Action: "person.remove", Detail: email, At: now}
	return s.people(ctx, "remove person", audit, tenants.Platform, func(tx pgx.Tx, q *dbsqlc.Queries) error {
		if err := q.DeleteRecoveryCodes(ctx, person.ID); err != nil {
			return err
		}
		if err := q.DeleteMemberships(ctx, person.ID); err != nil {
			return err
		}
		if err := s.uninvite(ctx, tx, audit, everywhere, person.Email, person.Email); err != nil {
			return err
		}
		if _, err := deleteResets(ctx, q, person.ID); err != nil {
			return err
		}
		return found(q.DeletePerson(ctx, person.ID))
	})
}

// everywhere is no merchant: it stands for all of them and the platform.
const everywhere tenants.MerchantID = ""

// uninvite ends the invitations to an address and those that somebody has made, at a merchant
// or everywhere, and audits each at its merchant.
func (s *Store) uninvite(ctx context.Context, tx pgx.Tx, because Audit, at tenants.MerchantID, email, by string) error {
	rows, err := dbsqlc.New(tx).WithdrawInvitations(ctx, dbsqlc.WithdrawInvitationsParams{MerchantID: string(at), Email: email, InvitedBy: by})
	for _, row := range rows {
		audit := Audit{Operator: because.Operator, Action: "member.uninvite", Detail: row.Email + ", with the rights of who invited or was invited", At: because.At}
		if err == nil {
			err = audited(ctx, tx, s.auditing(ctx, audit, movement.Owner{MerchantID: row.MerchantID}))
		}
		if err == nil {
			err = cancel(ctx, dbsqlc.New(tx), row.MailID)
		}
	}
	return err
}

// people administers who may do what at a merchant, or at the platform.
func (s *Store) people(ctx context.Context, what string, audit Audit, id tenants.MerchantID, change func(pgx.Tx, *dbsqlc.Queries) error, mails ...movement.Mail) error {
	err := s.administerTx(ctx, what, audit, id, change, mails...)
	if errors.Is(err, ErrNotFound) {
		return tenants.ErrNotFound
	}
	return err
}

// SessionStore keeps the consoles' sessions, for scs.
type SessionStore struct{ store *Store }

// Sessions are those of this store.
func (s *Store) Sessions() SessionStore { return SessionStore{s} }

// FindCtx reads a session that is not over.
func (s SessionStore) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	content, err := s.store.queries.Session(ctx, dbsqlc.SessionParams{TokenHash: token, Now: time.Now()})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	return content, err == nil, wrap("session", err)
}

// CommitCtx keeps a session until a time.
func (s SessionStore) CommitCtx(ctx context.Context, token string, content []byte, until time.Time) error {
	return wrap("keep session", s.store.queries.PutSession(ctx, dbsqlc.PutSessionParams{TokenHash: token, Content: content, ExpiresAt: micro(until)}))
}

// DeleteCtx ends a session. Its row stays until it is over, so that no request that began
// before brings it back.
func (s SessionStore) DeleteCtx(ctx context.Context, token string) error {
	return wrap("end session", s.store.queries.EndSession(ctx, token))
}

// forgotten is how many sessions are forgotten at a time.
const forgotten = 1000

// Forget forgets sessions that are over, and tells whether there may be more.
func (s SessionStore) Forget(ctx context.Context, now time.Time) (more bool, err error) {
	rows, err := s.store.queries.ForgetSessions(ctx, dbsqlc.ForgetSessionsParams{Before: micro(now), Most: forgotten})
	return rows == forgotten, wrap("forget sessions", err)
}

// Find is FindCtx, Commit CommitCtx and Delete DeleteCtx for callers without a context.
func (s SessionStore) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

// Commit keeps a session.
func (s SessionStore) Commit(token string, content []byte, until time.Time) error {
	return s.CommitCtx(context.Background(), token, content, until)
}

// Delete ends a session.
func (s SessionStore) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }
