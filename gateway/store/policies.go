package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

const (
	// keepPolicies is how many of the newest versions are kept, of those that were refused
	// and of the others, and besides them what waits for an operator, and everything that is
	// or ever was in force: what was decided can be explained as long as there is an audit.
	keepPolicies = 100
	// maxFiles bounds what a version's files may unpack to, far above what people write.
	maxFiles = 64 << 20
)

// PolicyState is what became of a version.
type PolicyState string

// The states of a version. A refused one can be pushed again; any other can be
// activated. Waiting is for a second operator.
const (
	PolicyRefused PolicyState = "refused"
	PolicyPushed  PolicyState = "pushed"
	PolicyWaiting PolicyState = "waiting"
	PolicyActive  PolicyState = "active"
	PolicyPast    PolicyState = "past"
)

// PolicyVersion is a policy set as it was pushed. Nothing of it ever changes, but its
// state and findings.
type PolicyVersion struct {
	Version     policy.Version
	Number      int64         // counts the pushes from 1
	Source      policy.Source // nil in lists
	Author      string
	Message     string
	Forced      string         // why a refusal for its meaning was overruled, "" where none was
	Predecessor policy.Version // in force when it was pushed, "" for the first
	PushedAt    time.Time
	MAC         []byte

	State    PolicyState
	StateAt  time.Time
	Findings []policy.Finding
	Damaged  bool // the findings can't be read, and say so
}

// Digest is what a version's MAC is over: all that never changes. The files are in it by
// the version, which is their digest.
func (v PolicyVersion) Digest() []byte {
	return digestOf("gerbang.policy.v1", string(v.Version), v.Author, v.Message, v.Forced, string(v.Predecessor),
		strconv.FormatInt(v.PushedAt.UnixMicro(), 10))
}

// digestOf digests texts, each behind its length, so that no two lists are alike.
func digestOf(parts ...string) []byte {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return h.Sum(nil)
}

// ErrPolicyDamaged says that the files in a version's row can't be read.
var ErrPolicyDamaged = errors.New("store: the files in this version's row can't be read")

// errPushed says that a version is there already; the transaction has nothing to write.
var errPushed = errors.New("store: this version was pushed before")

// PushPolicy keeps a version, with its audit entry, as pushed or refused, and returns
// what is kept. A version that was pushed before stays what it was, and pushed is false;
// one that was refused is judged anew.
func (s *Store) PushPolicy(ctx context.Context, audit Audit, v PolicyVersion) (kept PolicyVersion, pushed bool, err error) {
	row, err := versionRow(v)
	if err != nil {
		return PolicyVersion{}, false, err
	}
	err = s.administer(ctx, "push policy", audit, tenants.Platform, func(q *dbsqlc.Queries) error {
		if _, err := q.DeleteRefusedPolicy(ctx, row.Version); err != nil {
			return err
		}
		switch there, err := q.PolicyStates(ctx, []string{row.Version}); {
		case err != nil:
			return err
		case len(there) > 0:
			return errPushed
		}
		if _, err := q.InsertPolicyVersion(ctx, row); err != nil {
			return err
		}
		return forgetPolicies(ctx, q, audit.At)
	})
	if err != nil && !errors.Is(err, errPushed) {
		return PolicyVersion{}, false, err
	}
	pushed = err == nil
	kept, err = s.PolicyVersion(ctx, v.Version)
	return kept, pushed, err
}

// forgetPolicies removes what is beyond the versions that are kept.
func forgetPolicies(ctx context.Context, q *dbsqlc.Queries, now time.Time) error {
	gone, err := q.ForgetPolicyVersions(ctx, keepPolicies)
	if err != nil {
		return err
	}
	if len(gone) > 0 {
		if err := q.ForgetPolicyActivations(ctx, gone); err != nil {
			return err
		}
	}
	return q.ForgetPolicyAnswers(ctx, micro(now.Add(-rememberReplicas)))
}

// ErrPolicyHeadGone says that there are versions or activations, but no word which one
// is in force: a row is gone, and this is not the first start.
var ErrPolicyHeadGone = errors.New("store: the row in policy_head is gone")

// FirstPolicy puts a version in force where none ever was, by the activation done. Where
// several replicas start at once, the first one's stands.
func (s *Store) FirstPolicy(ctx context.Context, audit Audit, v PolicyVersion, head PolicyHead, done Activation) error {
	v.State = PolicyActive
	row, err := versionRow(v)
	if err != nil {
		return err
	}
	err = s.administer(ctx, "first policy", audit, tenants.Platform, func(q *dbsqlc.Queries) error {
		rows, err := q.InsertPolicyHead(ctx, dbsqlc.InsertPolicyHeadParams{
			ActivationID: head.Activation, Version: row.Version, ChangedAt: micro(audit.At), Mac: head.MAC,
		})
		if err != nil {
			return err
		}
		if rows == 0 {
			return errPushed
		}
		switch found, err := q.AnyPolicy(ctx); {
		case err != nil:
			return err
		case found:
			return ErrPolicyHeadGone
		}
		if _, err := q.InsertPolicyVersion(ctx, row); err != nil {
			return err
		}
		first := activationRow(done, micro(audit.At))
		first.ProposedAt, first.DecidedAt = &first.RequestedAt, &first.RequestedAt
		return q.InsertPolicyActivation(ctx, first)
	})
	if errors.Is(err, errPushed) {
		return nil
	}
	return err
}

// PolicyVersion reads a version with its files, or is ErrNotFound or ErrPolicyDamaged.
// Whether its MAC is right is for the caller to see.
func (s *Store) PolicyVersion(ctx context.Context, version policy.Version) (PolicyVersion, error) {
	row, err := s.queries.PolicyVersion(ctx, string(version))
	if err != nil {
		return PolicyVersion{}, fmt.Errorf("store: policy version: %w", notFound(err))
	}
	v := versionFromRow(dbsqlc.PolicyVersionsRow{
		Version: row.Version, Number: row.Number, Author: row.Author, Message: row.Message, Forced: row.Forced, Predecessor: row.Predecessor,
		PushedAt: row.PushedAt, Mac: row.Mac, State: row.State, StateAt: row.StateAt, Findings: row.Findings,
	})
	if v.Source, err = unpacked(row.Files); err != nil {
		return PolicyVersion{}, fmt.Errorf("%w: %w", ErrPolicyDamaged, err)
	}
	return v, nil
}

// PolicyVersions lists the versions that are kept, the newest first, without their files.
func (s *Store) PolicyVersions(ctx context.Context) ([]PolicyVersion, error) {
	rows, err := s.queries.PolicyVersions(ctx)
	if err != nil {
		return nil, fmt.Errorf("store: policy versions: %w", err)
	}
	versions := make([]PolicyVersion, len(rows))
	for i, row := range rows {
		versions[i] = versionFromRow(row)
	}
	return versions, nil
}

func versionRow(v PolicyVersion) (dbsqlc.InsertPolicyVersionParams, error) {
	files, err := packed(v.Source)
	if err != nil {
		return dbsqlc.InsertPolicyVersionParams{}, fmt.Errorf("store: push policy: %w", err)
	}
	findings, err := json.Marshal(v.Findings)
	if err != nil {
		return dbsqlc.InsertPolicyVersionParams{}, fmt.Errorf("store: push policy: %w", err)
	}
	return dbsqlc.InsertPolicyVersionParams{
		Version: string(v.Version), Files: files, Author: v.Author, Message: v.Message, Forced: v.Forced, Predecessor: string(v.Predecessor),
		PushedAt: micro(v.PushedAt), Mac: v.MAC, State: string(v.State), Findings: string(findings),
	}, nil
}

func versionFromRow(row dbsqlc.PolicyVersionsRow) PolicyVersion {
	v := PolicyVersion{
		Version: policy.Version(row.Version), Number: row.Number, Author: row.Author, Message: row.Message, Forced: row.Forced,
		Predecessor: policy.Version(row.Predecessor), PushedAt: row.PushedAt.UTC(), MAC: row.Mac,
		State: PolicyState(row.State), StateAt: row.StateAt.UTC(),
	}
	if err := json.Unmarshal([]byte(row.Findings), &v.Findings); err != nil {
		v.Findings, v.Damaged = []policy.Finding{{Check: policy.CheckCompile, Warning: true, Reason: "the findings in this version's row can't be read"}}, true
	}
	return v
}

// packed is a set's files, compressed.
func packed(source policy.Source) ([]byte, error) {
	var out bytes.Buffer
	to := gzip.NewWriter(&out)
	if err := json.NewEncoder(to).Encode(source); err != nil {
		return nil, err
	}
	if err := to.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func unpacked(files []byte) (source policy.Source, err error) {
	from, err := gzip.NewReader(bytes.NewReader(files))
	if err != nil {
		return nil, err
	}
	return source, json.NewDecoder(io.LimitReader(from, maxFiles)).Decode(&source)
}

// PolicyHead is what is in force, and what is proposed to replace it.
type PolicyHead struct {
	Activation uuid.UUID
	Version    policy.Version
	Changes    int64 // counts the activations from 1
	ChangedAt  time.Time
	MAC        []byte

	Proposal   uuid.UUID // zero where nothing is proposed
	Proposed   policy.Version
	ProposedAt time.Time
}

// Digest is what the head's MAC is over.
func (h PolicyHead) Digest() []byte {
	return digestOf("gerbang.policy.head.v1", h.Activation.String(), string(h.Version), strconv.FormatInt(h.Changes, 10))
}

// PolicyHead reads what is in force, or is ErrNotFound where nothing ever was.
func (s *Store) PolicyHead(ctx context.Context) (PolicyHead, error) {
	row, err := s.queries.PolicyHead(ctx)
	if err != nil {
		return PolicyHead{}, fmt.Errorf("store: policy head: %w", notFound(err))
	}
	return headFromRow(row), nil
}

func headFromRow(row dbsqlc.PolicyHeadRow) PolicyHead {
	h := PolicyHead{
		Activation: row.ActivationID, Version: policy.Version(row.Version), Changes: row.Changes, ChangedAt: row.ChangedAt.UTC(), MAC: row.Mac,
		ProposedAt: orZero(row.ProposedAt),
	}
	if row.ProposalID != nil && row.Proposed != nil {
		h.Proposal, h.Proposed = *row.ProposalID, policy.Version(*row.Proposed)
	}
	return h
}
