package simulator

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// manifests is where the shipped plugins are, from the package's folder.
var manifests = filepath.Join("..", "..", "plugins")

// shipped is the catalog of the shipped plugins, with a bug where one is planted there.
func shipped(bug Bug) *catalog.Catalog {
	var all []*manifest.Manifest
	for _, plugin := range []string{"payments", "midtrans", "ppob", "wallet1", "wallet2"} {
		document, err := os.ReadFile(filepath.Join(manifests, plugin, "manifest.json"))
		if err != nil {
			panic(err)
		}
		parsed, err := manifest.Parse(document)
		if err != nil {
			panic(err)
		}
		all = append(all, parsed)
	}
	snapshot, err := catalog.Build(all)
	if err != nil {
		panic(err)
	}
	if bug == BelievedNotFound {
		for _, shared := range snapshot.Operations() {
			for _, op := range append(shared.Serving(), shared) {
				op.Rules.NotFound = movement.Proof{Times: 1}
				op.Rules.Pace.SettlesWithin = -time.Minute
			}
		}
	}
	if bug == BelievedToken {
		for _, shared := range snapshot.Operations() {
			for _, op := range append(shared.Serving(), shared) {
				op.Rules.Signed = true
			}
		}
	}
	return catalog.New(snapshot)
}

var sound = sync.OnceValue(func() *catalog.Catalog { return shipped(NoBug) })

// register knows the merchants of a history and what was reserved, and gives what goes
// by chance a name that does not.
type register struct {
	catalog     *catalog.Catalog
	holders     map[tenants.MerchantID]*tenants.Account
	names       map[movement.ID]string
	ids         []movement.ID // in the order of their reservations
	count       map[movement.ID]int
	logged      map[movement.ID]int // entries of the history that no change has made
	accounts    map[movement.AccountID]string
	known       []movement.AccountID // the same, in the order of their connections
	pace        map[string]time.Duration
	overridden  map[movement.ID]bool
	overstated  map[string]bool           // things of which a provider once told more than had come
	resubmitted map[movement.ID]time.Time // when operators have decided it
	assigned    map[movement.ID]bool
	resolved    map[movement.ID][]movement.Exception // by hand
	ended       map[movement.ID]movement.State
	attempts    map[movement.ID]map[int]bool
	onEnd       func(c movement.Change)
	onReserve   func(m movement.Movement)
	merchants   map[string]string
	quotas      map[limit.Usage]*quota
	counted     []limit.Usage // the same, in their order
}

func newRegister(bug Bug) *register {
	b := &register{
		catalog: sound(), holders: map[tenants.MerchantID]*tenants.Account{}, names: map[movement.ID]string{},
		count: map[movement.ID]int{}, logged: map[movement.ID]int{}, accounts: map[movement.AccountID]string{}, pace: map[string]time.Duration{},
		overridden: map[movement.ID]bool{}, overstated: map[string]bool{}, resubmitted: map[movement.ID]time.Time{}, assigned: map[movement.ID]bool{}, resolved: map[movement.ID][]movement.Exception{}, ended: map[movement.ID]movement.State{},
		attempts: map[movement.ID]map[int]bool{}, merchants: map[string]string{},
		quotas: map[limit.Usage]*quota{},
	}
	if bug == BelievedNotFound || bug == BelievedToken {
		b.catalog = shipped(bug)
	}
	for _, op := range b.catalog.Current().Operations() {
		for _, of := range op.Serving() {
			if of.Money() {
				b.pace[of.Provider] = of.Rules.Pace.Every
			}
		}
	}
	return b
}

// reserved notes a reservation.
func (b *register) reserved(m movement.Movement) {
	if b.names[m.ID] == "" {
		b.names[m.ID] = fmt.Sprintf("%s/%s/%s", b.owner(m.Owner.MerchantID), m.Kind, m.CallersReference())
		if m.Unnamed() {
			b.names[m.ID] += fmt.Sprintf("unnamed%d", len(b.ids))
		}
		b.ids = append(b.ids, m.ID)
		b.attempts[m.ID] = map[int]bool{}
	}
	b.count[m.ID]++
	b.attempts[m.ID][m.Attempt] = true
	b.onReserve(m)
}

// applied notes a transition.
func (b *register) applied(c movement.Change) {
	if c.Effect == movement.Move && c.To.Final() {
		b.onEnd(c)
		b.ended[c.Movement.ID] = c.To
	}
}

// owner is a merchant's name in the trace.
func (b *register) owner(id string) string { return b.merchants[id] }

func (b *register) name(id movement.ID) string {
	if name := b.names[id]; name != "" {
		return name
	}
	return "nobody's"
}

// upstreamName names one of our references without its id.
func (b *register) upstreamName(reference string) string {
	id, ok := movement.ParseUpstreamReference(reference)
	if !ok || b.names[id] == "" {
		return "unknown"
	}
	return b.names[id]
}

func (b *register) subject(text string) string {
	if id, err := movement.ParseID(text); err == nil {
		return b.name(id)
	}
	if _, ours := movement.ParseUpstreamReference(text); ours {
		return b.upstreamName(text)
	}
	return text
}

// show is a result as the trace has it.
func (b *register) show(value any) string {
	switch value := value.(type) {
	case movement.Movement:
		return b.name(value.ID) + " " + string(value.State)
	case pair[movement.Movement, bool]:
		return fmt.Sprintf("%s %s, ours %v", b.name(value.a.ID), value.a.State, value.b)
	case movement.Override:
		return fmt.Sprintf("%s, made %v", value.Outcome, value.Made())
	case sdk.Result:
		return value.Outcome.String() + " " + value.Detail
	case sdk.StatusUpdate:
		text := fmt.Sprintf("%s %v %s of %s %s", value.Status, value.Amount, value.Currency, b.upstreamName(value.Reference), value.EventID)
		for _, r := range value.Returns {
			text += fmt.Sprintf(", %s back by %s, undone %v", r.Amount, r.ID, r.Undone)
		}
		return text
	case sdk.Quoted:
		return value.Outcome.String()
	case sdk.StatementPage:
		return fmt.Sprintf("known %v, %d lines to %q, more %v", value.Known, len(value.Lines), value.Cursor, value.More)
	case sdk.Acknowledgement:
		return fmt.Sprint(value.Status)
	case []string:
		return strings.Join(value, " ")
	case nothing:
		return "done"
	}
	return fmt.Sprint(value)
}

// Account is for package lifecycle.
func (b *register) Account(_ context.Context, id tenants.MerchantID) (*tenants.Account, error) {
	if account := b.holders[id]; account != nil {
		return account, nil
	}
	return nil, tenants.ErrNotFound
}

// ByNotifyToken is for package lifecycle.
func (b *register) ByNotifyToken(_ context.Context, _ time.Time, p tenants.Provider, token tenants.NotifyToken) (*tenants.Account, tenants.Connection, error) {
	for _, account := range b.holders {
		for _, c := range account.Connections() {
			if c.Provider == p && c.NotifyToken == token {
				return account, c, nil
			}
		}
	}
	return nil, tenants.Connection{}, tenants.ErrNotFound
}

// token is where a provider notifies of a merchant's account.
func (b *register) token(id tenants.MerchantID, provider string) tenants.NotifyToken {
	c, _ := b.holders[id].Connection(tenants.Live, tenants.Provider(provider))
	return c.NotifyToken
}

// OpenCredentials is for package lifecycle.
func (b *register) OpenCredentials(c tenants.Connection) ([]byte, error) { return c.Sealed, nil }

// connection is an account at a provider, by its name.
func connection(id tenants.MerchantID, provider, name string, version int64, token tenants.NotifyToken) tenants.Connection {
	owner := tenants.OwnerMerchant
	if id == tenants.Platform {
		owner = tenants.OwnerPlatform
	}
	sealed, _ := json.Marshal(map[string]string{"account": name, "merchant_code": name, "username": name, "client_id": name}) // strings
	return tenants.Connection{
		MerchantID: id, Mode: tenants.Live, Provider: tenants.Provider(provider), Owner: owner, Version: version, Sealed: sealed, NotifyToken: token,
	}
}

// tokenOf is the notify token of an account, always the same.
func tokenOf(name string) tenants.NotifyToken {
	sum := sha256.Sum256([]byte(name))
	return tenants.NotifyToken(base64.RawURLEncoding.EncodeToString(sum[:]))
}
