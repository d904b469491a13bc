package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

const (
	// lookEvery is how often a replica reads the head, and lookSoon how often while a
	// proposal is open.
	lookEvery = 250 * time.Millisecond
	lookSoon  = 50 * time.Millisecond
	// lookTimeout bounds one look at the database.
	lookTimeout = 5 * time.Second
	// freshFor is how long a replica may take money without having read the head: the same
	// as for revoked keys.
	freshFor = 30 * time.Second
	// silentAfter is how long a proposal waits for a replica's answer.
	silentAfter = 5 * time.Second
	// compileTime bounds the work on one version, its tests included.
	compileTime = 10 * time.Second
	// judgeTime bounds the judgement of a pushed set, which an operator waits for.
	judgeTime = 20 * time.Second
	// searchTime bounds the search of a replica that starts for a version that it can run.
	searchTime = time.Minute
	// retryAfter is when a version that could not be loaded is tried again, and repeatEvery
	// how often it is listed again.
	retryAfter  = 10 * time.Second
	repeatEvery = time.Minute
	// behindFor is how long a replica may take money on a version that is no longer in force.
	behindFor = 5 * time.Minute
	// beatEvery is how often a replica says that it lives, and inspectEvery how often it
	// looks for versions that no gateway has written. Their files are read once, so many at
	// a time.
	beatEvery    = 5 * time.Second
	inspectEvery = time.Minute
	inspectFiles = 10
)

// Versions reads versions and the head, and keeps the first of all. PolicyHead is
// store.ErrNotFound before it.
type Versions interface {
	PolicyHead(ctx context.Context) (store.PolicyHead, error)
	PolicyVersion(ctx context.Context, version policy.Version) (store.PolicyVersion, error)
	PolicyVersions(ctx context.Context) ([]store.PolicyVersion, error)
	Activation(ctx context.Context, id uuid.UUID) (store.Activation, error)
	Activations(ctx context.Context, most int) ([]store.Activation, error)
	FirstPolicy(ctx context.Context, audit store.Audit, v store.PolicyVersion, head store.PolicyHead, done store.Activation) error
}

// Proposals takes replicas' answers to a proposal, and ends it. What ends it is false
// where another replica was faster.
type Proposals interface {
	AnswerPolicy(ctx context.Context, activation uuid.UUID, answer store.PolicyAnswer) error
	PolicyAnswers(ctx context.Context, activation uuid.UUID) ([]store.PolicyAnswer, error)
	MovePolicyHead(ctx context.Context, audit store.Audit, head, next store.PolicyHead, done store.Activation) (bool, error)
	RefuseProposal(ctx context.Context, audit store.Audit, head store.PolicyHead, detail string, findings []policy.Finding) (bool, error)
	WithdrawProposal(ctx context.Context, audit store.Audit, head store.PolicyHead, why string) (bool, error)
}

// Members knows which replicas run.
type Members interface {
	LiveReplicas(ctx context.Context, now time.Time) ([]store.Replica, error)
	ReportReplica(ctx context.Context, r store.Replica) error
	EndReplica(ctx context.Context, id uuid.UUID, now time.Time) error
}

// Exceptions is the list of what needs a person.
type Exceptions interface {
	AddException(ctx context.Context, x movement.Exception) (bool, error)
	ResolveExceptions(ctx context.Context, now time.Time, owner movement.Owner, subject string, reasons []string, operator, resolution string) error
}

// Store is what a follower needs of the database.
type Store interface {
	Versions
	Proposals
	Members
	Exceptions
}

// Vault makes and checks the MACs of versions, activations and the head.
type Vault interface {
	SealPolicy(digest []byte) ([]byte, error)
	VerifyPolicy(mac, digest []byte) error
}

// Dependencies is what a follower works with.
type Dependencies struct {
	Store Store
	Vault Vault
	Self  store.Replica // without its policy version, plugins and heartbeat
	// Plugins are the digests of the plugins, by provider, "" for one that is down.
	Plugins func() map[string]string
	// Files are the digests of the binaries in this replica's directory of plugins.
	Files func() []string
	// Alone says that no other replica is waited for. It is for development.
	Alone bool
	// First is the set that is in force where none ever was, and FirstMessage why.
	First        policy.Source
	FirstMessage string
	// Refused counts what this replica refused: "proposal" or "head".
	Refused func(what string)
	Now     func() time.Time
	Log     *slog.Logger

	// Compile judges a version and makes its set; nil is policy.Compile.
	Compile func(context.Context, policy.Source) (*policy.Set, error)
}

// unusable says why a version can't run here, whatever is tried again.
type unusable struct{ why string }

func (u *unusable) Error() string { return u.why }

// errUnsigned is what a row without a valid MAC is.
var errUnsigned = &unusable{"its MAC is not valid: no gateway with this keyset has written the row"}

// load reads a version, sees that a gateway wrote it, and compiles it. An *unusable
// error is about the version, or about what this machine can compile in time; any other
// is about the database.
func (f *Follower) load(ctx context.Context, version policy.Version) (*policy.Set, error) {
	if set := f.compiled[version]; set != nil {
		return set, nil
	}
	v, err := f.deps.Store.PolicyVersion(ctx, version)
	if errors.Is(err, store.ErrNotFound) {
		return nil, &unusable{"there is no such version"}
	}
	if errors.Is(err, store.ErrPolicyDamaged) {
		return nil, &unusable{err.Error()}
	}
	if err != nil {
		return nil, err
	}
	if err := f.deps.Vault.VerifyPolicy(v.MAC, v.Digest()); err != nil {
		return nil, errUnsigned
	}
	if v.Source.Version() != version {
		return nil, &unusable{"its files are not those that were pushed"}
	}
	compiling, cancel := context.WithTimeout(context.WithoutCancel(ctx), compileTime)
	defer cancel()
	set, err := f.deps.Compile(compiling, v.Source)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, &unusable{fmt.Sprintf("it does not compile within %s", compileTime)}
	case err != nil:
		if _, wrong := errors.AsType[*policy.Error](err); wrong {
			return nil, &unusable{err.Error()}
		}
		return nil, err // whoever compiles it was ended by somebody else: it is tried again
	}
	f.keep(version, set)
	return set, nil
}

// keep remembers a compiled set, and forgets all but what is in force.
func (f *Follower) keep(version policy.Version, set *policy.Set) {
	kept := map[policy.Version]*policy.Set{version: set}
	if f.active != nil {
		kept[f.active.Set().Version()] = f.active.Set()
	}
	f.compiled = kept
}

// Problems are why a version was refused.
func Problems(v store.PolicyVersion) *policy.Error {
	e := &policy.Error{}
	for _, f := range v.Findings {
		if !f.Warning {
			e.Problems = append(e.Problems, policy.Problem{File: f.File, Line: f.Line, Col: f.Col, Message: f.Reason})
		}
	}
	return e
}

// Short is how people write a version.
func Short(version policy.Version) string {
	const digits = 12
	return string(version[:min(len(version), digits)])
}

// Name is how people are told of a replica.
func Name(r store.Replica) string {
	const digits = 8
	return cmp.Or(r.Host, "unnamed") + "/" + r.ID.String()[:digits]
}

// subjectOf is a version's exceptions' subject, or where nobody knows the version in force
// the head's.
func subjectOf(version policy.Version) string { return "policy " + cmp.Or(Short(version), "head") }

// ofPlatform is whose exceptions those of policies are.
var ofPlatform = movement.Owner{MerchantID: string(tenants.Platform), Mode: string(tenants.Live)}

// except tells operators why a version does not run, once until it is resolved.
func (f *Follower) except(ctx context.Context, version policy.Version, what, why string) {
	f.deps.Refused(what)
	f.deps.Log.ErrorContext(ctx, "policy version refused; the old one stays in force", "version", version, "what", what, "problem", why)
	f.list(ctx, subjectOf(version), Name(f.deps.Self), f.refusal(what, why))
}

// refusal is an exception's text.
func (f *Follower) refusal(what, why string) string {
	return fmt.Sprintf("replica %s refuses this version (%s): %s", Name(f.deps.Self), what, why)
}

// list adds an exception about a version, and is false where that failed.
func (f *Follower) list(ctx context.Context, subject, fact, detail string) bool {
	_, err := f.deps.Store.AddException(ctx, movement.Exception{
		Owner: ofPlatform, Subject: subject, Reason: movement.ReasonPolicy, FactID: fact, Detail: fitted(detail), At: f.deps.Now(), Lasting: true,
	})
	if err != nil {
		f.deps.Log.ErrorContext(ctx, "a refused policy version can't be listed as an exception", "subject", subject, "error", err)
	}
	return err == nil
}

// Inspect lists each version that no gateway has written, or whose row is damaged, as an
// exception, once for all replicas. One goroutine calls it.
func (f *Follower) Inspect(ctx context.Context) error {
	versions, err := f.deps.Store.PolicyVersions(ctx)
	if err != nil {
		return err
	}
	files := inspectFiles
	for _, v := range versions {
		var why string
		switch {
		case f.listed[v.Version]:
		case f.deps.Vault.VerifyPolicy(v.MAC, v.Digest()) != nil:
			why = "is never loaded: " + errUnsigned.why
		case v.Damaged:
			why = "is damaged: the findings can't be read"
		case files > 0 && !f.whole[v.Version]:
			files--
			_, err := f.deps.Store.PolicyVersion(ctx, v.Version)
			switch {
			case errors.Is(err, store.ErrPolicyDamaged):
				why = "is damaged and never loaded: the files can't be read"
			case err != nil && !errors.Is(err, store.ErrNotFound):
				return err
			default:
				f.whole[v.Version] = true
			}
		}
		if why == "" {
			continue
		}
		f.deps.Log.ErrorContext(ctx, "the row of a policy version "+why, "version", v.Version)
		f.listed[v.Version] = f.list(ctx, "row of "+subjectOf(v.Version), "row", "the row in the table policy_versions "+why)
	}
	return nil
}

// fitted bounds what a set's own rules may have said.
func fitted(text string) string {
	const most = 1000
	text = strings.ToValidUTF8(text, "?")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
