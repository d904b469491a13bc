package limit

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var home = netip.MustParseAddr("192.0.2.1")

// address is the n-th of many.
func address(n int) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, 0x0a000000+uint32(n))))
}

// fail records failures and answers how many were not blocked.
func fail(f *Failures, now time.Time, addr netip.Addr, times int) (counted int) {
	for range times {
		if blocked, _ := f.Record(now, addr); !blocked {
			counted++
		}
	}
	return counted
}

// isBlocked reports, without counting anything, whether a failure now would be one too many.
func isBlocked(f *Failures, now time.Time, addr netip.Addr) (bool, time.Duration) {
	if log := f.shard(subscriber(addr)).addresses[subscriber(addr)]; log != nil {
		return log.blocked(now)
	}
	return false, 0
}

func TestTwentyFailuresAMinute(t *testing.T) {
	t.Parallel()
	f := NewFailures()
	for i := range maxFailures {
		if blocked, _ := isBlocked(f, start, home); blocked {
			t.Fatalf("blocked after %d failures", i)
		}
		if blocked, _ := f.Record(start.Add(time.Duration(i)*time.Second), home); blocked {
			t.Fatalf("failure %d is blocked", i+1)
		}
	}
	now := start.Add(30 * time.Second)
	for range 3 { // what is blocked is not counted, so the wait grows no longer
		if blocked, after := f.Record(now, home); !blocked || after != 30*time.Second {
			t.Errorf("one too many gives %v, %s; want blocked for 30 s", blocked, after)
		}
	}
	if blocked, after := isBlocked(f, now, home); !blocked || after != 30*time.Second {
		t.Errorf("asking gives %v, %s; want blocked for 30 s", blocked, after)
	}
	if got := fail(f, start.Add(failureWindow), home, 5); got != 1 {
		t.Errorf("%d failures are let through when the first is a minute old, want 1", got)
	}
	if got := fail(f, start.Add(time.Hour), home, 100); got != maxFailures {
		t.Errorf("%d failures are let through an hour later, want %d", got, maxFailures)
	}
}

func TestWhatCountsAsOneAddress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, second string
		same          bool
	}{
		"IPv4":             {"192.0.2.1", "192.0.2.2", false},
		"IPv4 in IPv6":     {"192.0.2.1", "::ffff:192.0.2.1", true},
		"one network":      {"2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true},
		"another network":  {"2001:db8:1:2::1", "2001:db8:1:3::1", false},
		"zones":            {"fe80::1%eth0", "fe80::2%eth1", true},
		"IPv4 and IPv6":    {"192.0.2.1", "2001:db8::c000:201", false},
		"IPv6 of its size": {"::192.0.2.1", "192.0.2.1", false},
	} {
		f := NewFailures()
		fail(f, start, netip.MustParseAddr(c.first), maxFailures)
		if blocked, _ := isBlocked(f, start, netip.MustParseAddr(c.second)); blocked != c.same {
			t.Errorf("%s: %s is blocked for %s: %v, want %v", name, c.second, c.first, blocked, c.same)
		}
	}
	f := NewFailures()
	if got := fail(f, start, netip.Addr{}, 30); got != maxFailures {
		t.Errorf("an address that is none has %d failures, want %d as any other", got, maxFailures)
	}
}

// TestNoMinuteHasMoreThanTwenty slides a minute over any run of failures.
func TestNoMinuteHasMoreThanTwenty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f, now := NewFailures(), start
		var counted []time.Time
		for range rapid.IntRange(1, 300).Draw(t, "failures") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(4*time.Second)).Draw(t, "pause")))
			asked, _ := isBlocked(f, now, home)
			blocked, after := f.Record(now, home)
			if asked != blocked || blocked != (after > 0) || after > failureWindow {
				t.Fatalf("asked %v, recorded %v, wait %s", asked, blocked, after)
			}
			if !blocked {
				counted = append(counted, now)
			}
			if n := len(counted); n > maxFailures && now.Sub(counted[n-1-maxFailures]) < failureWindow {
				t.Fatalf("more than %d within a minute", maxFailures)
			}
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	f := NewFailures()
	const many = 3 * failureShards * addressesPerShard
	for i := range many {
		f.Record(start.Add(time.Duration(i)*time.Millisecond), address(i))
	}
	held := 0
	for i := range f.shards {
		held += len(f.shards[i].addresses)
	}
	if most := failureShards * addressesPerShard; held > most || held < most/2 {
		t.Errorf("%d addresses are held, want no more than %d and not far less", held, most)
	}
}

func BenchmarkFailures(b *testing.B) {
	f, now := NewFailures(), start
	b.Run("blocked", func(b *testing.B) {
		fail(f, now, home, maxFailures)
		b.ReportAllocs()
		for b.Loop() {
			f.Record(now, home)
		}
	})
	b.Run("ever new addresses", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			f.Record(now, address(i%(1<<24)))
		}
	})
}
