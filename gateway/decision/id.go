package decision

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strconv"
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
