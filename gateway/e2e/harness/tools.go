package harness

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

var Jakarta = time.FixedZone("WIB", 7*60*60)

// TortureMinutes is how long a test tortures, which is not run without an order.
func TortureMinutes(t *testing.T) float64 {
	t.Helper()
	minutes, err := strconv.ParseFloat(os.Getenv(minutesVariable), 64)
	if err != nil || minutes <= 0 {
		t.Skipf("set %s, as make torture does", minutesVariable)
	}
	return minutes
}

func sum[K comparable](counts map[K]int) int {
	total := 0
	for count := range maps.Values(counts) {
		total += count
	}
	return total
}

// UnknownPhone is a phone number that the simulator knows nothing of: whatever is
// bought for it can be told apart by it.
func UnknownPhone() string {
	return "0878" + fmt.Sprintf("%08d", 30_000_000+uuid.New().ID()%60_000_000)
}

// NewReference is a reference as shops number.
func NewReference() string { return "INV/2026/#" + uuid.NewString() }

var Timestamp = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)

// minutesVariable says how long TestTorture tortures; without it, it does not.
const minutesVariable = "GERBANG_TORTURE_MINUTES"

// Counted is a count for people.
func Counted(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	return fmt.Sprintf("%d (%s)", sum(counts), strings.Join(parts, ", "))
}

// JSONText is a text as JSON, null for none.
func JSONText(text string) string {
	if text == "" {
		return "null"
	}
	encoded, _ := json.Marshal(text)
	return string(encoded)
}
