package callback

import (
	"bufio"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const fewestHostile = 150

// hostile is one line of the corpus.
type hostile struct {
	line  int
	class string
	url   string
	rest  []string
}

func corpus(t *testing.T, classes ...string) []hostile {
	t.Helper()
	file, err := os.Open("testdata/hostile_urls.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []hostile
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		if text := lines.Text(); text != "" && !strings.HasPrefix(text, "#") {
			all = append(all, parseHostile(t, n, text))
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(all) < fewestHostile {
		t.Fatalf("the corpus has %d URLs, want at least %d", len(all), fewestHostile)
	}
	all = slices.DeleteFunc(all, func(h hostile) bool { return !slices.Contains(classes, h.class) })
	if len(all) == 0 {
		t.Fatalf("the corpus has nothing of %v", classes)
	}
	return all
}

func parseHostile(t *testing.T, n int, text string) hostile {
	t.Helper()
	class, rest, ok := strings.Cut(text, " ")
	if !ok || !slices.Contains([]string{"url", "name", "mixed", "rebinding", "redirect", "answer"}, class) {
		t.Fatalf("line %d is not understood: %s", n, text)
	}
	if quoted, err := strconv.QuotedPrefix(rest); err == nil {
		plain, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("line %d: %s", n, err)
		}
		return hostile{line: n, class: class, url: plain, rest: strings.Fields(rest[len(quoted):])}
	}
	fields := strings.Fields(rest)
	return hostile{line: n, class: class, url: fields[0], rest: fields[1:]}
}

func (h hostile) host(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(h.url)
	if err != nil {
		t.Fatalf("line %d: %s", h.line, err)
	}
	return u.Hostname()
}

// addresses reads a list; good are those that may be connected to.
func (h hostile) addresses(t *testing.T, field int) (all, good []netip.Addr) {
	t.Helper()
	for text := range strings.SplitSeq(h.rest[field], ",") {
		text, isGood := strings.CutPrefix(text, "+")
		addr, err := netip.ParseAddr(text)
		if err != nil {
			t.Fatalf("line %d: %s", h.line, err)
		}
		all = append(all, addr)
		if isGood {
			good = append(good, addr)
		}
	}
	return all, good
}

func TestHostileURLsAreRefusedByWhatTheyShow(t *testing.T) {
	t.Parallel()
	world, gate := newNames(), &turnstile{}
	s := senderBehind(t, Config{Resolver: world.resolver()}, gate.stand)
	for _, h := range corpus(t, "url") {
		if err := CheckURL(h.url, false); err == nil || !strings.HasPrefix(err.Error(), "must ") {
			t.Errorf("line %d: %q gives %v", h.line, h.url, err)
		}
		if a := s.Send(t.Context(), messageTo(h.url), onlyA); a.Outcome != Refused || a.Error == "" {
			t.Errorf("line %d: %q ends as %+v", h.line, h.url, a)
		}
	}
	if gate.judged != 0 || world.questions() != 0 {
		t.Errorf("%d connections were tried and %d questions asked, want none", gate.judged, world.questions())
	}
}

func TestHostileNamesAreRefusedAtTheSocket(t *testing.T) {
	t.Parallel()
	world, gate := newNames(), &turnstile{}
	s := senderBehind(t, Config{Resolver: world.resolver()}, gate.stand)
	for _, h := range corpus(t, "name") {
		all, _ := h.addresses(t, 0)
		world.add(h.host(t), all)
		judged := gate.judged
		if err := CheckURL(h.url, false); err != nil {
			t.Errorf("line %d: %s never comes to the socket: %s", h.line, h.url, err)
		}
		a := s.Send(t.Context(), messageTo(h.url), onlyA)
		if a.Outcome != Refused || strings.Contains(a.Error, all[0].String()) {
			t.Errorf("line %d: %s ends as %+v", h.line, h.url, a)
		}
		if gate.judged-judged < len(all) { // Go tries 0.0.0.0 as well where it reads ::
			t.Errorf("line %d: %d addresses were judged, want %d", h.line, gate.judged-judged, len(all))
		}
		if passed := gate.through(); len(passed) > 0 {
			t.Errorf("line %d: %s was let through to %v", h.line, h.url, passed)
		}
	}
}

func TestOfSeveralAddressesEachIsJudged(t *testing.T) {
	t.Parallel()
	world, gate := newNames(), &turnstile{}
	s := senderBehind(t, Config{Resolver: world.resolver()}, gate.stand)
	for _, h := range corpus(t, "mixed") {
		all, good := h.addresses(t, 0)
		world.add(h.host(t), all)
		s.Send(t.Context(), messageTo(h.url), onlyA)
		if passed := gate.through(); !slices.Equal(passed, good) {
			t.Errorf("line %d: %s was let through to %v, want %v", h.line, h.url, passed, good)
		}
	}
}

func TestRebindingIsRefusedOnTheNextTry(t *testing.T) {
	t.Parallel()
	world, gate := newNames(), &turnstile{}
	s := senderBehind(t, Config{Resolver: world.resolver()}, gate.stand)
	for _, h := range corpus(t, "rebinding") {
		first, _ := h.addresses(t, 0)
		second, _ := h.addresses(t, 1)
		// An address of one family only answers one of the two questions.
		world.add(h.host(t), first, second)
		s.Send(t.Context(), messageTo(h.url), onlyA)
		if passed := gate.through(); !slices.Equal(passed, first) {
			t.Errorf("line %d: the first try was let through to %v, want %v", h.line, passed, first)
		}
		a := s.Send(t.Context(), messageTo(h.url), onlyA)
		if passed := gate.through(); a.Outcome != Refused || len(passed) > 0 {
			t.Errorf("line %d: the second try ends as %+v, let through to %v", h.line, a, passed)
		}
	}
}
