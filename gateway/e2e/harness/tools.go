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

// Jakarta is the time zone of providers and quotas.
var Jakarta = time.FixedZone("WIB", 7*60*60)

// TortureMinutes is how long to torture. It skips the test where make torture did
// not ask for it.
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

// UnknownPhone is a phone number that the simulator has no plan for. Each is used
// once, so that what is sent to it can be found upstream.
func UnknownPhone() string {
	return "0878" + fmt.Sprintf("%08d", 30_000_000+uuid.New().ID()%60_000_000)
}

// NewReference is a reference in the form that shops use.
func NewReference() string { return "INV/2026/#" + uuid.NewString() }

// Timestamp is the form of every time that merchants read.
var Timestamp = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)

// minutesVariable says how long the torture tests run. Without it they are skipped.
const minutesVariable = "GERBANG_TORTURE_MINUTES"

// Counted prints counts by name for the test's log.
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
