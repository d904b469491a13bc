package adminapi

import (
	"time"

	"github.com/seed-f006e74d/gerbang/policy"
)

// MaxPolicy is the largest body that has a policy set in it, in bytes. Compiling takes many times as much memory.
const MaxPolicy = 2 << 20

// NewPolicy is a policy set to be kept as a version.
type NewPolicy struct {
	// Files are contents by name: data.json and .rego files. Without a .rego file, those
	// of the version in force are taken.
	Files   map[string]string `json:"files"`
	Message string            `json:"message"`
	// Force overrules what is wrong with the set's meaning, and says why; it can't
	// overrule anything else.
	Force string `json:"force,omitempty"`
	// Replaces is the version that the set was edited from; another one in force refuses it. Where it is not given, the
	// version in force must be the first, or pushed by the same operator.
	Replaces string `json:"replaces,omitempty"`
}

// PolicyVersion is a policy set that was pushed.
type PolicyVersion struct {
	Version     string           `json:"version"` // SHA-256 of its files
	Number      int64            `json:"number"`  // counts the pushes from 1
	State       string           `json:"state"`   // refused, pushed, waiting, active or past
	StateAt     time.Time        `json:"state_at"`
	Author      string           `json:"author"`
	Message     string           `json:"message"`
	Forced      string           `json:"forced,omitempty"`      // why a refusal was overruled
	Predecessor string           `json:"predecessor,omitempty"` // in force when it was pushed
	PushedAt    time.Time        `json:"pushed_at"`
	Replicas    int              `json:"replicas"` // live ones that run it
	Findings    []policy.Finding `json:"findings"`
	Existed     bool             `json:"existed,omitempty"`  // before this push
	Unsigned    bool             `json:"unsigned,omitempty"` // no gateway with this keyset has written it: it is never loaded

	Files map[string]string `json:"files,omitempty"` // contents by name; not in lists
}

// PolicyTest is what a push would find in a set, which is not kept.
type PolicyTest struct {
	Version  string           `json:"version"`
	Rules    string           `json:"rules,omitempty"` // the version whose rules were taken, where the set has none
	Good     bool             `json:"good"`
	Findings []policy.Finding `json:"findings"`
}

// PolicyDiff is how one version becomes another.
type PolicyDiff struct {
	A     string            `json:"a"`
	B     string            `json:"b"`
	Files map[string]string `json:"files"` // those that differ, as diff -u writes them, by name
}

// PolicyName names a version by the beginning of its name; active is the one in force.
type PolicyName struct {
	Version string `path:"version" arg:"" optional:"" default:"active" help:"The beginning of a version; the one in force unless given."`
}

// PolicyPair names two versions.
type PolicyPair struct {
	A string `path:"version" arg:"" help:"The beginning of a version, or active."`
	B string `path:"other" arg:"" help:"The beginning of another one, or active."`
}

// ActivationID names an activation.
type ActivationID struct {
	Activation string `path:"activation"`
}

// ActivatedPolicy puts a version in force.
type ActivatedPolicy struct {
	Version string `path:"version" json:"-" arg:"" help:"The beginning of a version."`
	Wish
}

// Wish is how a version comes into force, or how it is rolled back.
type Wish struct {
	// Replaces is the version that has to be in force; the one that is, unless given.
	Replaces string `json:"replaces,omitempty" placeholder:"VERSION" help:"Only if this version is in force."`
	Reason   string `json:"reason,omitempty" help:"Why; kept in the audit."`
	// Force overrules, for the reason, that the version does not fit the merchants and
	// operations of now.
	Force bool `json:"force,omitempty" help:"Overrule that it does not fit the merchants and operations there are now, such as a tier in use that it has not."`
	// Yes says that what findings want to be confirmed is meant.
	Yes bool `json:"yes,omitempty" help:"Also if the push has warned that it refuses all money of a tier."`
}

// PolicyActivation is what became of an activation. It is decided when its state is
// done, refused or withdrawn.
type PolicyActivation struct {
	ActivationID string     `json:"activation_id"`
	Version      string     `json:"version"`
	Replaces     string     `json:"replaces,omitempty"`
	State        string     `json:"state"` // waiting for another operator, proposed, done, refused or withdrawn
	Reason       string     `json:"reason,omitempty"`
	RequestedBy  string     `json:"requested_by"`
	RequestedAt  time.Time  `json:"requested_at"`
	ConfirmedBy  string     `json:"confirmed_by,omitempty"`
	ProposedAt   *time.Time `json:"proposed_at,omitempty"`
	DecidedAt    *time.Time `json:"decided_at,omitempty"`
	Detail       string     `json:"detail,omitempty"` // who refused it, or who was silent
	InForce      bool       `json:"in_force"`
	Behind       []string   `json:"behind"` // live replicas that do not run it
	Replicas     int        `json:"replicas"`
}

// Replica is a gateway that runs, or has run, on the same database.
type Replica struct {
	ReplicaID  string            `json:"replica_id"`
	Name       string            `json:"name"`
	Tag        uint16            `json:"tag"`
	State      string            `json:"state"` // live, ended, or silent since its last heartbeat
	Policy     string            `json:"policy_version,omitempty"`
	Binary     string            `json:"binary,omitempty"`
	Schema     SchemaRange       `json:"schema"`
	Plugins    map[string]string `json:"plugins"` // SHA-256 by provider, "" for one that is down
	StartedAt  time.Time         `json:"started_at"`
	SeenAt     time.Time         `json:"seen_at"`
	EndedAt    *time.Time        `json:"ended_at,omitempty"`
	HeadIsHere bool              `json:"runs_policy_in_force"`
}

// SchemaRange is which versions of the database's tables a gateway works on.
type SchemaRange struct {
	From  int64 `json:"from"`
	Below int64 `json:"below"`
}

// The acts on policies. A refused version is an answer, not an error; an activation is decided by the replicas within seconds.
var (
	PushPolicy   = Endpoint[NewPolicy, PolicyVersion]{Act{Route: "POST /admin/policies", Takes: ChangePolicy, Large: true, Text: "Have a set judged and kept as a version."}}
	TestPolicy   = Endpoint[NewPolicy, PolicyTest]{Act{Route: "POST /admin/policy/test", Takes: ChangePolicy, Large: true, Text: "Judge a set as a push does, and keep nothing."}}
	TryPolicy    = Endpoint[PolicyCase, PolicyAnswer]{Act{Route: "POST /admin/policy/try", Takes: ChangePolicy, Large: true, Text: "Ask a policy about a case. Nothing is counted or kept."}}
	DiffPolicies = Endpoint[PolicyPair, PolicyDiff]{Act{Route: "GET /admin/policies/{version}/diff/{other}", Takes: Read, Text: "Tell how one version becomes another."}}
	ListPolicies = Endpoint[None, []PolicyVersion]{Act{Route: "GET /admin/policies", Takes: Read, Text: "List the versions, the newest first."}}
	ShowPolicy   = Endpoint[PolicyName, PolicyVersion]{Act{Route: "GET /admin/policies/{version}", Takes: Read, Text: "Read a version with its files."}}

	ActivatePolicy = Endpoint[ActivatedPolicy, PolicyActivation]{Act{Route: "POST /admin/policies/{version}/activate", Takes: ChangePolicy, Text: "Propose a version to the replicas."}}
	RollBackPolicy = Endpoint[Wish, PolicyActivation]{Act{Route: "POST /admin/policies/rollback", Takes: ChangePolicy, Text: "Propose the version that was in force before."}}
	ShowActivation = Endpoint[ActivationID, PolicyActivation]{Act{Route: "GET /admin/policies/activations/{activation}", Takes: Read, Text: "Tell what became of an activation."}}
	ListReplicas   = Endpoint[None, []Replica]{Act{Route: "GET /admin/replicas", Takes: Read, Text: "List the gateways that run, or ran within a day, the oldest first."}}
)
