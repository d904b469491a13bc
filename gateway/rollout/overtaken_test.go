package rollout

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
)

// TestNobodysEditIsLost: two operators edit the same version; the second one's push is refused with what the first one
// changed, also when it is repeated, until it names the version that it replaces.
func TestNobodysEditIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start("a")
	begin := w.head().Version
	put := func(version policy.Version, wish Wish) error {
		_, err := w.publisher.Activate(t.Context(), version, wish)
		w.look(r)
		return err
	}
	source := func(burst int) policy.Source {
		s := policy.Default()
		s["data.json"] = fmt.Appendf(nil, `{"tiers": {"starter": {"rate_per_second": 5, "burst": %d}}}`, burst)
		return s
	}
	push := func(author string, burst int, replaces policy.Version) (store.PolicyVersion, error) {
		v, _, err := w.publisher.Push(t.Context(), Push{Source: source(burst), Author: author, Message: "a try", Replaces: replaces})
		return v, err
	}
	ayus, err := push("ayu", 11, begin)
	if err != nil {
		t.Fatal(err)
	}
	early, err := push("budi", 12, "") // nobody has put anything in force yet but the first start
	if err != nil {
		t.Fatal(err)
	}
	if err := put(ayus.Version, Wish{Operator: "ayu"}); err != nil {
		t.Fatal(err)
	}
	w.run(ayus.Version, r)
	refused := func(what string, err error) {
		t.Helper()
		o, ok := errors.AsType[*Overtaken](err)
		if !ok || o.Head != ayus.Version || o.Author != "ayu" || !strings.Contains(o.Diff, `+{"tiers": {"starter": {"rate_per_second": 5, "burst": 11}}}`) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for range 2 {
		_, err = push("budi", 12, begin)
		refused("from the version before", err)
		_, err = push("budi", 13, "")
		refused("from nobody knows where", err)
		refused("pushed before, activated after", put(early.Version, Wish{Operator: "budi"}))
	}
	if got := w.head().Version; got != ayus.Version {
		t.Fatalf("in force is %s", got)
	}
	if _, err = push("ayu", 14, ""); err != nil {
		t.Errorf("an operator's own: %v", err)
	}
	budis, err := push("budi", 12, ayus.Version)
	if err == nil {
		err = put(budis.Version, Wish{Operator: "budi", Replaces: ayus.Version})
	}
	if err != nil {
		t.Fatalf("by name: %v", err)
	}
	w.run(budis.Version, r)
}

// TestWhatIsSeldomMeantIsConfirmed: a version with such a finding is put in force with yes alone.
func TestWhatIsSeldomMeantIsConfirmed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start("a")
	source := policy.Default()
	source["data.json"] = []byte(`{"tiers": {"closed": {"rate_per_second": 5, "burst": 10}}}`)
	version := w.push(source)
	_, err := w.publisher.Activate(t.Context(), version, Wish{Operator: "ayu"})
	if u, ok := errors.AsType[*Unconfirmed](err); !ok || !strings.Contains(u.Error(), "it takes no money") {
		t.Errorf("without yes: %v", err)
	}
	if _, err := w.publisher.Activate(t.Context(), version, Wish{Operator: "ayu", Yes: true}); err != nil {
		t.Fatal(err)
	}
	w.look(r)
	w.run(version, r)
}
