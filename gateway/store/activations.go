package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// ProposalLasts is after how long a proposal that nobody has decided is given up.
const ProposalLasts = time.Minute

// ActivationState is what became of an activation.
type ActivationState string

// The states of an activation: it waits for a second operator, is proposed to the
// replicas, and then its version is in force, was refused by a replica, or never came
// to be.
const (
	ActivationWaiting   ActivationState = "waiting"
	ActivationProposed  ActivationState = "proposed"
	ActivationDone      ActivationState = "done"
	ActivationRefused   ActivationState = "refused"
	ActivationWithdrawn ActivationState = "withdrawn"
)

// Activation is an operator's wish to put a version in force.
type Activation struct {
	ID          uuid.UUID
	Version     policy.Version
	Replaces    policy.Version // what has to be in force
	Back        uuid.UUID      // the activation that a rollback of this one returns to, zero for none
	Reason      string
	RequestedBy string
	RequestedAt time.Time
	ConfirmedBy string // a second operator, "" where none was asked for
	ProposedAt  time.Time
	State       ActivationState
	DecidedAt   time.Time
	Detail      string // who refused it, or who was silent
	Changes     int64  // the head's, when it was proposed
	MAC         []byte
}

// Digest is what an activation's MAC is over: who wants what, and how far it has come.
// One that has ended without coming into force has none.
func (a Activation) Digest() []byte {
	return digestOf("gerbang.policy.activation.v1", string(a.State), a.ID.String(), string(a.Version), string(a.Replaces), a.Back.String(),
		a.RequestedBy, a.ConfirmedBy, strconv.FormatInt(a.Changes, 10))
}

// PolicyAnswer is what a replica says of a proposed version.
type PolicyAnswer struct {
	Replica  uuid.UUID
	Compiled bool
	Reason   string // why not
	At       time.Time
}

var (
	// ErrPolicyActive says that the version is in force already.
	ErrPolicyActive = errors.New("store: this version is in force already")
	// ErrPolicyRefused says that the version was refused, so it can't be activated.
	ErrPolicyRefused = errors.New("store: this version was refused")
	// ErrPolicyMoved says that another version is in force than the one to be replaced.
	ErrPolicyMoved = errors.New("store: another version is in force")
	// ErrPolicyProposed says that another activation is under way.
	ErrPolicyProposed = errors.New("store: another version is being activated")
)

// WaitingActivation is the oldest that waits for a second operator to put a version in
// force instead of another, or ErrNotFound.
func (s *Store) WaitingActivation(ctx context.Context, version, replaces policy.Version) (Activation, error) {
	row, err := s.queries.WaitingPolicyActivation(ctx, dbsqlc.WaitingPolicyActivationParams{Version: string(version), Replaces: string(replaces)})
	if err != nil {
		return Activation{}, fmt.Errorf("store: waiting activation: %w", notFound(err))
	}
	return activationFromRow(row), nil
}

// WaitingActivations lists those that wait for a second operator, the newest first.
func (s *Store) WaitingActivations(ctx context.Context, most int) ([]Activation, error) {
	rows, err := s.queries.WaitingPolicyActivations(ctx, int32(most)) //nolint:gosec // a page
	list := make([]Activation, len(rows))
	for i, row := range rows {
		list[i] = activationFromRow(row)
	}
	return list, wrap("waiting activations", err)
}

// Activate proposes a version to the replicas, with an audit entry. It has to name what
// it replaces: of two operators at once one is ErrPolicyMoved or ErrPolicyProposed. One
// whose state is waiting is kept for a second operator; one with ConfirmedBy is one of
// those.
func (s *Store) Activate(ctx context.Context, audit Audit, a Activation) (Activation, error) {
	err := s.administer(ctx, "activate policy", audit, tenants.Platform, func(q *dbsqlc.Queries) error {
		if err := mayActivate(ctx, q, audit.At, a); err != nil {
			return err
		}
		now := micro(audit.At)
		switch {
		case a.State == ActivationWaiting:
			return wait(ctx, q, a, now)
		case a.ConfirmedBy != "":
			rows, err := q.ConfirmPolicyActivation(ctx, dbsqlc.ConfirmPolicyActivationParams{
				ConfirmedBy: a.ConfirmedBy, ProposedAt: now, ActivationID: a.ID, Mac: a.MAC, Changes: a.Changes,
			})
			if err == nil && rows == 0 {
				err = ErrPolicyMoved
			}
			if err != nil {
				return err
			}
		default:
			row := activationRow(a, now)
			row.ProposedAt = &now
			if err := q.InsertPolicyActivation(ctx, row); err != nil {
				return err
			}
		}
		return propose(ctx, q, a, now)
	})
	if err != nil {
		return Activation{}, err
	}
	return s.Activation(ctx, a.ID)
}

// wait keeps an activation for a second operator, where none like it waits already.
func wait(ctx context.Context, q *dbsqlc.Queries, a Activation, now time.Time) error {
	row := activationRow(a, now)
	_, err := q.WaitingPolicyActivation(ctx, dbsqlc.WaitingPolicyActivationParams{Version: row.Version, Replaces: row.Replaces})
	if err == nil {
		return ErrPolicyProposed
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if err := q.InsertPolicyActivation(ctx, row); err != nil {
		return err
	}
	_, err = q.SetPolicyState(ctx, stateChange(a.Version, now, PolicyWaiting, PolicyPushed))
	return err
}

func activationRow(a Activation, now time.Time) dbsqlc.InsertPolicyActivationParams {
	row := dbsqlc.InsertPolicyActivationParams{
		ActivationID: a.ID, Version: string(a.Version), Replaces: string(a.Replaces), Reason: a.Reason, RequestedBy: a.RequestedBy,
		RequestedAt: now, State: string(a.State), Mac: a.MAC, Changes: a.Changes,
	}
	if a.Back != uuid.Nil {
		row.BackID = &a.Back
	}
	return row
}

// mayActivate refuses an activation that can't come true.
func mayActivate(ctx context.Context, q *dbsqlc.Queries, now time.Time, a Activation) error {
	row, err := q.PolicyHead(ctx)
	if err != nil {
		return err
	}
	head := headFromRow(row)
	if head.Proposal != uuid.Nil && now.Sub(head.ProposedAt) > ProposalLasts {
		if err := withdraw(ctx, q, head, now, "nobody decided within a minute"); err != nil {
			return err
		}
		head.Proposal = uuid.Nil
	}
	states, err := q.PolicyStates(ctx, []string{string(a.Version)})
	switch {
	case err != nil:
		return err
	case len(states) == 0:
		return ErrNotFound
	case PolicyState(states[0].State) == PolicyRefused:
		return ErrPolicyRefused
	case head.Proposal != uuid.Nil:
		return ErrPolicyProposed
	case head.Version == a.Version:
		return ErrPolicyActive
	case head.Version != a.Replaces:
		return ErrPolicyMoved
	}
	return nil
}

func propose(ctx context.Context, q *dbsqlc.Queries, a Activation, now time.Time) error {
	rows, err := q.ProposePolicy(ctx, dbsqlc.ProposePolicyParams{
		ProposalID: a.ID, Proposed: string(a.Version), ProposedAt: now, Replaces: string(a.Replaces), Changes: a.Changes,
	})
	if err == nil && rows == 0 {
		err = ErrPolicyMoved
	}
	return err
}

// withdraw gives a proposal up.
func withdraw(ctx context.Context, q *dbsqlc.Queries, head PolicyHead, now time.Time, why string) error {
	rows, err := q.WithdrawPolicyProposal(ctx, head.Proposal)
	if err != nil || rows == 0 {
		return err
	}
	if _, err := q.DecidePolicyActivation(ctx, dbsqlc.DecidePolicyActivationParams{
		State: string(ActivationWithdrawn), DecidedAt: micro(now), Detail: why, ActivationID: head.Proposal,
	}); err != nil {
		return err
	}
	_, err = q.SetPolicyState(ctx, stateChange(head.Proposed, now, PolicyPushed, PolicyWaiting))
	return err
}

func stateChange(version policy.Version, now time.Time, becomes PolicyState, was ...PolicyState) dbsqlc.SetPolicyStateParams {
	from := make([]string, len(was))
	for i, state := range was {
		from[i] = string(state)
	}
	return dbsqlc.SetPolicyStateParams{Becomes: string(becomes), At: micro(now), Version: string(version), Was: from}
}

// errDecided says that somebody else has decided a proposal.
var errDecided = errors.New("store: this proposal is decided")

// MovePolicyHead puts the proposed version in force, with an audit entry: head is what
// was read, next the head and done the activation as they become, with their MACs. It is
// false where the proposal was decided meanwhile, or a replica has refused it, and an
// error where the version may not come into force.
func (s *Store) MovePolicyHead(ctx context.Context, audit Audit, head, next PolicyHead, done Activation) (bool, error) {
	return s.decide(ctx, audit, func(q *dbsqlc.Queries) error {
		now := micro(audit.At)
		answers, err := q.PolicyAnswers(ctx, head.Proposal)
		if err != nil {
			return err
		}
		for _, answer := range answers {
			if !answer.Compiled {
				return errDecided
			}
		}
		rows, err := q.MovePolicyHead(ctx, dbsqlc.MovePolicyHeadParams{
			ActivationID: head.Proposal, Version: string(next.Version), ChangedAt: now, Mac: next.MAC,
			Replaces: string(head.Version), Changes: head.Changes,
		})
		if err != nil {
			return err
		}
		if rows == 0 {
			return errDecided
		}
		if rows, err = q.FinishPolicyActivation(ctx, dbsqlc.FinishPolicyActivationParams{
			DecidedAt: now, Detail: done.Detail, Mac: done.MAC, ActivationID: head.Proposal,
		}); err != nil {
			return err
		}
		if rows == 0 {
			return errDecided
		}
		if _, err := q.SetPolicyState(ctx, stateChange(head.Version, now, PolicyPast, PolicyActive)); err != nil {
			return err
		}
		rows, err = q.SetPolicyState(ctx, stateChange(next.Version, now, PolicyActive, PolicyPushed, PolicyWaiting, PolicyPast))
		if err == nil && rows == 0 {
			err = ErrPolicyRefused
		}
		if err != nil {
			return err
		}
		return withdrawWaiting(ctx, q, next.Version, now)
	})
}

// withdrawWaiting ends what waits to replace a version that is no longer in force.
func withdrawWaiting(ctx context.Context, q *dbsqlc.Queries, head policy.Version, now time.Time) error {
	waited, err := q.WithdrawWaitingPolicies(ctx, dbsqlc.WithdrawWaitingPoliciesParams{
		DecidedAt: now, Detail: "another version was put in force", Head: string(head),
	})
	if err != nil {
		return err
	}
	for _, version := range waited {
		if _, err := q.SetPolicyState(ctx, stateChange(policy.Version(version), now, PolicyPushed, PolicyWaiting)); err != nil {
			return err
		}
	}
	return nil
}

// RefuseProposal ends the proposal because a replica refused it, with an audit entry.
// A version that was never in force is refused from then on. It is false where somebody
// else has decided it.
func (s *Store) RefuseProposal(ctx context.Context, audit Audit, head PolicyHead, detail string, findings []policy.Finding) (bool, error) {
	row, err := versionRow(PolicyVersion{Findings: findings})
	if err != nil {
		return false, err
	}
	return s.decide(ctx, audit, func(q *dbsqlc.Queries) error {
		rows, err := q.WithdrawPolicyProposal(ctx, head.Proposal)
		if err != nil {
			return err
		}
		if rows == 0 {
			return errDecided
		}
		if _, err := q.DecidePolicyActivation(ctx, dbsqlc.DecidePolicyActivationParams{
			State: string(ActivationRefused), DecidedAt: micro(audit.At), Detail: detail, ActivationID: head.Proposal,
		}); err != nil {
			return err
		}
		_, err = q.RefusePolicy(ctx, dbsqlc.RefusePolicyParams{At: micro(audit.At), Findings: row.Findings, Version: string(head.Proposed)})
		return err
	})
}

// WithdrawProposal gives a proposal up that nobody has decided, with an audit entry.
func (s *Store) WithdrawProposal(ctx context.Context, audit Audit, head PolicyHead, why string) (bool, error) {
	return s.decide(ctx, audit, func(q *dbsqlc.Queries) error {
		row, err := q.PolicyHead(ctx)
		if err != nil {
			return err
		}
		if headFromRow(row).Proposal != head.Proposal {
			return errDecided
		}
		return withdraw(ctx, q, head, audit.At, why)
	})
}

func (s *Store) decide(ctx context.Context, audit Audit, change func(*dbsqlc.Queries) error) (bool, error) {
	err := s.administer(ctx, "decide policy", audit, tenants.Platform, change)
	if errors.Is(err, errDecided) {
		return false, nil
	}
	return err == nil, err
}

// AnswerPolicy keeps what a replica says of a proposal; its first word stays.
func (s *Store) AnswerPolicy(ctx context.Context, activation uuid.UUID, answer PolicyAnswer) error {
	return wrap("answer policy", s.queries.AnswerPolicy(ctx, dbsqlc.AnswerPolicyParams{
		ActivationID: activation, ReplicaID: answer.Replica, Compiled: answer.Compiled, Reason: answer.Reason, AnsweredAt: micro(answer.At),
	}))
}

// PolicyAnswers reads what replicas have said of a proposal.
func (s *Store) PolicyAnswers(ctx context.Context, activation uuid.UUID) ([]PolicyAnswer, error) {
	rows, err := s.queries.PolicyAnswers(ctx, activation)
	answers := make([]PolicyAnswer, len(rows))
	for i, row := range rows {
		answers[i] = PolicyAnswer{Replica: row.ReplicaID, Compiled: row.Compiled, Reason: row.Reason, At: row.AnsweredAt.UTC()}
	}
	return answers, wrap("policy answers", err)
}

// Activation reads an activation, or is ErrNotFound.
func (s *Store) Activation(ctx context.Context, id uuid.UUID) (Activation, error) {
	row, err := s.queries.PolicyActivation(ctx, id)
	if err != nil {
		return Activation{}, fmt.Errorf("store: activation: %w", notFound(err))
	}
	return activationFromRow(row), nil
}

// Activations lists activations, the newest first.
func (s *Store) Activations(ctx context.Context, most int) ([]Activation, error) {
	rows, err := s.queries.PolicyActivations(ctx, int32(most)) //nolint:gosec // a page
	activations := make([]Activation, len(rows))
	for i, row := range rows {
		activations[i] = activationFromRow(row)
	}
	return activations, wrap("activations", err)
}

func activationFromRow(row dbsqlc.PolicyActivation) Activation {
	a := Activation{
		ID: row.ActivationID, Version: policy.Version(row.Version), Replaces: policy.Version(row.Replaces), Reason: row.Reason,
		RequestedBy: row.RequestedBy, RequestedAt: row.RequestedAt.UTC(), ConfirmedBy: row.ConfirmedBy, ProposedAt: orZero(row.ProposedAt),
		State: ActivationState(row.State), DecidedAt: orZero(row.DecidedAt), Detail: row.Detail, Changes: row.Changes, MAC: row.Mac,
	}
	if row.BackID != nil {
		a.Back = *row.BackID
	}
	return a
}
