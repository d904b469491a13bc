package decision

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// How many bits of an id tell what; 128 in all. The low half holds version, rule, mode, operation and serial, the high half
// the rest.
const (
	secondBits    = 31 // since epoch: until 2094
	replicaBits   = 16
	versionHigh   = 17 // of the version's bits
	versionLow    = 3
	ruleBits      = 11
	modeBits      = 1
	operationBits = 9
	merchantBits  = 24
	serialBits    = 16
	versionBits   = versionHigh + versionLow
)

// epoch is the first second that an id can tell.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// ID names a decision, and tells those who have the installation's key what it was. To all others it is random: neither
// its merchant nor another learns from it how much a replica does.
type ID [16]byte

// String is the form of a UUID.
func (id ID) String() string { return uuid.UUID(id).String() }

// Facts is what an id tells. Merchant, operation and version are digests, by which they are found among those that exist.
type Facts struct {
	At        time.Time // the second
	Replica   uint16
	Version   uint32
	Rule      Rule
	Live      bool
	Merchant  uint32
	Operation uint16
	Serial    uint16 // tells decisions of one second apart
}

// Key makes and reads ids.
type Key struct{ block cipher.Block }

// NewKey derives the key of ids from the installation's own. Ids can be read as long as that exists.
func NewKey(installation []byte) Key {
	mac := hmac.New(sha256.New, installation)
	mac.Write([]byte("gerbang.decision"))
	block, err := aes.NewCipher(mac.Sum(nil)[:aes.BlockSize])
	if err != nil {
		panic(err) // the size is right
	}
	return Key{block}
}

// Seal makes an id of facts. What does not fit is cut off.
func (k Key) Seal(f Facts) (id ID) {
	second := min(max(f.At.Unix()-epoch.Unix(), 0), 1<<secondBits-1)
	version := uint64(f.Version) & (1<<versionBits - 1)
	high := uint64(second)<<33 | uint64(f.Replica)<<versionHigh | version>>versionLow
	low := version&(1<<versionLow-1)<<61 | uint64(f.Rule&(rules-1))<<50 | uint64(f.Operation&(1<<operationBits-1))<<40 |
		uint64(f.Merchant&(1<<merchantBits-1))<<serialBits | uint64(f.Serial)
	if f.Live {
		low |= 1 << 49
	}
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], low)
	k.block.Encrypt(id[:], id[:])
	return id
}

// ErrNotOurs says that a text is no id of this installation's.
var ErrNotOurs = errors.New("decision: no id of a decision of this gateway")

// Open reads the facts of an id. Of what is no id of ours it reads facts that never were, so their second is held against
// the present, and their merchant must exist.
func (k Key) Open(text string, now time.Time) (Facts, error) {
	id, err := parseID(text)
	if k.block == nil || err != nil {
		return Facts{}, ErrNotOurs
	}
	k.block.Decrypt(id[:], id[:])
	high, low := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	//nolint:gosec // each part is cut to its bits
	f := Facts{
		At:      epoch.Add(time.Duration(high>>33) * time.Second),
		Replica: uint16(high >> versionHigh), Version: uint32(high&(1<<versionHigh-1))<<versionLow | uint32(low>>61),
		Rule: Rule(low >> 50 & (1<<ruleBits - 1)), Live: low>>49&1 == 1, Operation: uint16(low >> 40 & (1<<operationBits - 1)),
		Merchant: uint32(low >> serialBits & (1<<merchantBits - 1)), Serial: uint16(low),
	}
	if f.At.After(now.Add(ahead)) {
		return Facts{}, ErrNotOurs
	}
	return f, nil
}

// parseID reads what String wrote.
func parseID(text string) (ID, error) {
	const length = 36
	parsed, err := uuid.Parse(text)
	if err != nil || len(text) != length {
		return ID{}, ErrNotOurs
	}
	return ID(parsed), nil
}

// ahead is how far clocks of replicas may differ.
const ahead = time.Minute

// VersionDigest is what an id tells of a policy's version, the beginning of its hexadecimal digest.
func VersionDigest(version string) uint32 {
	digits := version[:min(len(version), versionBits/4)]
	n, err := strconv.ParseUint(digits, 16, versionBits)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// MerchantDigest is what an id tells of a merchant.
func MerchantDigest(merchant string) uint32 { return digest(merchant) & (1<<merchantBits - 1) }

// OperationDigest is what an id tells of an operation's path.
func OperationDigest(path string) uint16 { return uint16(digest(path) & (1<<operationBits - 1)) }

// digest spreads texts over 32 bits. Nobody can look for two with the same, because nobody sees it.
func digest(text string) uint32 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	sum := uint64(offset)
	for i := range len(text) {
		sum = (sum ^ uint64(text[i])) * prime
	}
	sum ^= sum >> 32
	return uint32(sum) //nolint:gosec // the low half
}

// Namer makes the ids of one replica. Any number of goroutines may use it.
type Namer struct {
	key     Key
	replica uint16
	serial  atomic.Uint32
}

// NewNamer makes a namer. Its serial numbers begin anywhere, so that a replica that is started again in the same second
// under the same number repeats none.
func NewNamer(key Key, replica uint16) *Namer {
	n := &Namer{key: key, replica: replica}
	n.serial.Store(rand.Uint32()) //nolint:gosec // nobody gains by guessing it
	return n
}

// Name is the id of one decision. Within a second 65,536 of a replica are told apart, and far more that differ in
// merchant, operation or rule.
func (n *Namer) Name(at time.Time, version, merchant string, live bool, path string, rule Rule) ID {
	return n.key.Seal(Facts{
		At: at, Replica: n.replica, Version: VersionDigest(version), Rule: rule, Live: live,
		Merchant: MerchantDigest(merchant), Operation: OperationDigest(path), Serial: uint16(n.serial.Add(1)), //nolint:gosec // it goes round
	})
}

// Rule numbers what decided on a request. The numbers stand in ids and in the log: they are never given to another meaning.
type Rule uint16

// What decides besides the policy's own rules, rates and quotas.
const (
	// Admitted is the number of a request that nothing refused.
	Admitted Rule = 0
	// Unjudged says that the policy could not be evaluated: the request was answered INTERNAL.
	Unjudged Rule = 1
	// NoLimits says that the policy sets no limits for the merchant and the operation.
	NoLimits Rule = 2
	// Unnamed is a rule of the policy that has no number.
	Unnamed Rule = 3
	// The payout limits of a day and of a destination's day.
	DayAmount         Rule = 4
	DayCount          Rule = 5
	DestinationAmount Rule = 6
	DestinationCount  Rule = 7
	// Suspended and Scope refuse before the policy is asked: the merchant is not active, or the key lacks the operation's scope.
	Suspended Rule = 8
	Scope     Rule = 9
	// NotNamed says that an approval alone has brought the operation, and that the policy does not name its path.
	NotNamed Rule = 10

	firstRate   Rule = 16
	firstQuota  Rule = 144
	firstPolicy Rule = 272
	rules       Rule = 1 << ruleBits
)

// Rate is the number of a rate by its place among the names of the rates that the policy sets for a request, from 0.
func Rate(place int) Rule { return firstRate + Rule(min(max(place, 0), int(firstQuota-firstRate)-1)) }

// Quota is the number of a quota by its place among the names of the quotas, from 0.
func Quota(place int) Rule {
	return firstQuota + Rule(min(max(place, 0), int(firstPolicy-firstQuota)-1))
}

// Policy is the number of a refusal rule by its number in its set, from 1; [Unnamed] for one beyond what an id holds.
func Policy(number int) Rule {
	if number < 1 || number > int(rules-firstPolicy) {
		return Unnamed
	}
	return firstPolicy + Rule(number-1)
}

// Payout is the number of a payout limit by its name in a movement's usage.
func Payout(name string) Rule {
	toDestination, number := !strings.HasPrefix(name, "out."), strings.HasSuffix(name, ".count")
	switch {
	case toDestination && number:
		return DestinationCount
	case toDestination:
		return DestinationAmount
	case number:
		return DayCount
	}
	return DayAmount
}

// Refuses reports whether a request was refused.
func (r Rule) Refuses() bool { return r != Admitted }

// RatePlace is the place of a rate, and whether the rule is one. QuotaPlace and PolicyNumber are the same for quotas and
// for rules of a set.
func (r Rule) RatePlace() (int, bool) {
	return int(r) - int(firstRate), r >= firstRate && r < firstQuota
}

// QuotaPlace is the place of a quota among their names.
func (r Rule) QuotaPlace() (int, bool) {
	return int(r) - int(firstQuota), r >= firstQuota && r < firstPolicy
}

// PolicyNumber is the number of a refusal rule in its set.
func (r Rule) PolicyNumber() (int, bool) {
	return int(r) - int(firstPolicy) + 1, r >= firstPolicy && r < rules
}

// IsPayout reports whether the rule is a payout limit.
func (r Rule) IsPayout() bool { return r >= DayAmount && r <= DestinationCount }

// Verdict is what became of a request: admitted, denied, slowed, over_quota or unjudged.
func (r Rule) Verdict() string {
	switch {
	case r == Admitted:
		return "admitted"
	case r == Unjudged:
		return "unjudged"
	case r >= firstRate && r < firstQuota:
		return "slowed"
	case r >= firstQuota && r < firstPolicy:
		return "over_quota"
	}
	return "denied"
}

// String names a rule for people.
func (r Rule) String() string {
	if place, ok := r.RatePlace(); ok {
		return "rate " + strconv.Itoa(place+1)
	}
	if place, ok := r.QuotaPlace(); ok {
		return "quota " + strconv.Itoa(place+1)
	}
	if number, ok := r.PolicyNumber(); ok {
		return "rule " + strconv.Itoa(number)
	}
	if name, ok := names[r]; ok {
		return name
	}
	return fmt.Sprintf("unknown rule %d", uint16(r))
}

var names = map[Rule]string{
	Admitted: "none", Unjudged: "the policy could not be evaluated", NoLimits: "no limits", Unnamed: "a rule without a number",
	DayAmount: "daily amount of transfers", DayCount: "daily number of transfers",
	DestinationAmount: "daily amount to a destination", DestinationCount: "daily number to a destination",
	Suspended: "the merchant is suspended", Scope: "the key lacks the scope", NotNamed: "the policy does not name this operation",
}
