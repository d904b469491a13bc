package neighbours_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// attack is what one does to others.
type attack struct {
	what string
	// before is what came of it once, as measured from outside.
	before string
	// reads says that the merchant reads at the hostile plugin, in place of payments.
	reads bool
	// prepare makes ready what is not measured, and says where the merchant calls; nil for
	// the replica itself.
	prepare func(*street) (at harness.Shop, done func())
	// make goes on until the context ends, and tells what came of it.
	make func(context.Context, *street) string
	// may tells of a call of the merchant's that is not good whether it may be so; nil for
	// none.
	may func(call) bool
}

var attacks = []attack{
	{what: "nothing", before: "–", make: func(ctx context.Context, _ *street) string { <-ctx.Done(); return "nothing" }},
	{what: "a merchant's account leads nowhere and is used 5 times a second", before: "every merchant `PROVIDER_UNAVAILABLE`, and no exception", make: deadAccount},
	{what: "a test key makes 150 slow calls a second at the same provider", before: "not measured", make: slowTests},
	{
		what: "a test key makes 150 slow reads a second at a provider that the merchant reads from", before: "6 of 6 live reads refused, for 8 s",
		reads: true, make: slowReads,
	},
	{what: "600 connections with unknown notification tokens and a body of 1 MiB each", before: "948 MiB", make: strangers},
	{
		what:   "a key of 5 requests a second sends 100 invalid bodies of 60 KiB a second",
		before: "median of 2 s; answers of 300 KB; never limited", make: invalid,
	},
	{
		what:   "a plugin writes to its standard error as fast as it can",
		before: "211 MB in the log in 3 s, secrets among it", make: shouting,
	},
	{
		what:   "an approved plugin reads the gateway's secrets and memory",
		before: "tokens, keyset, database URL and API keys were read", make: reading,
	},
	{
		what:   "a plugin's file is exchanged all the time while its process is killed again and again",
		before: "the other binary ran, told as the approved one", make: exchanged,
	},
	{
		what:   "one plugin is missing, another hangs, is killed and hangs again",
		before: "no start, or `/readyz` 503 for all providers", make: broken,
	},
	{
		what:   "the database takes no writes, and later has another version's schema",
		before: "ready, while nothing could be paid", make: unfit,
		may: func(c call) bool {
			return c.err == nil && c.money && (c.Sent == fault.SentNo && c.Retry == fault.RetryLater || c.Retry == fault.RetryLookupFirst) // sent just before
		},
	},
	{
		what:   "one of two replicas behind haproxy is told to stop",
		before: "its listeners closed at once, without a 503; 11 s", prepare: beforeTwo, make: stopped,
	},
}

// attacker is another merchant.
func (s *street) attacker(tier string) harness.Shop {
	s.Helper()
	return s.NewShop(s, s.replica, tier)
}

// codes count answers.
type codes struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *codes) add(a harness.Answer, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	switch {
	case err != nil:
		c.counts["cut"]++
	case a.Success:
		c.counts["good"]++
	default:
		c.counts["`"+string(a.Code)+"`"]++
	}
}

func (c *codes) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return "its own calls: " + harness.Counted(c.counts)
}

func deadAccount(ctx context.Context, s *street) string {
	dead := s.attacker("starter")
	s.ConnectUnverified(s, s.replica, dead.MerchantID, func(credentials json.RawMessage) json.RawMessage {
		return json.RawMessage(strings.ReplaceAll(string(credentials), "127.0.0.1", "127.0.0.2"))
	})
	var got codes
	paced(ctx, time.Second/5, func(int) { got.add(dead.Post(s.Context(), "/payments/create", dead.PaymentBody(nil))) })
	return got.String()
}

// tester is another merchant's test key.
func (s *street) tester() harness.Shop {
	s.Helper()
	tester := s.attacker("scale")
	for _, made := range s.replica.Merchants {
		if made.MerchantID == tester.MerchantID {
			tester.Key = made.TestKey
		}
	}
	return tester
}

func slowTests(ctx context.Context, s *street) string {
	tester := s.tester()
	s.ConnectTest(s, s.replica, tester.MerchantID)
	s.replica.Inject(s, "latency", harness.FaultOperations["qris"], 1_000_000)
	var got codes
	paced(ctx, time.Second/150, func(int) {
		got.add(tester.Post(s.Context(), "/payments/create", tester.PaymentBody(harness.Fields{"type": "qris"})))
	})
	return got.String()
}

func slowReads(ctx context.Context, s *street) string {
	tester := s.tester()
	s.follow(tester, "test")
	var got codes
	paced(ctx, time.Second/150, func(int) {
		got.add(tester.Post(s.Context(), "/hostile/try", harness.Fields{"slow": true, "read": []string{}}))
	})
	return got.String()
}

// strangers come from other addresses than the merchant.
func strangers(ctx context.Context, s *street) string {
	const connections, body = 600, 1 << 20
	api, err := url.Parse(s.replica.APIURL)
	if err != nil {
		s.Fatal(err)
	}
	sent := make([]byte, body-1) // the gateway waits for the last byte, if it reads at all
	before, most := s.memory(), int64(0)
	var answered, hungUp atomic.Int64
	var group sync.WaitGroup
	for n := range connections {
		group.Go(func() {
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(3+n%2))}}
			conn, err := dialer.DialContext(ctx, "tcp", api.Host)
			if err != nil {
				hungUp.Add(1)
				return
			}
			defer conn.Close()
			if deadline, ok := ctx.Deadline(); ok {
				_ = conn.SetDeadline(deadline)
			}
			fmt.Fprintf(conn, "POST /notify/payments/%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", strings.Repeat(strconv.Itoa(n%10), 43), body)
			_, _ = conn.Write(sent)
			if line, _ := io.ReadAll(io.LimitReader(conn, 12)); bytes.HasPrefix(line, []byte("HTTP/1.1 4")) {
				answered.Add(1)
			} else {
				hungUp.Add(1)
			}
		})
	}
	for tick := time.NewTicker(100 * time.Millisecond); ctx.Err() == nil; <-tick.C {
		most = max(most, s.memory())
	}
	group.Wait()
	grown := (most - before) >> 20
	if grown > 300 {
		s.Errorf("%d connections take %d MiB", connections, grown)
	}
	return fmt.Sprintf("%d refused, %d hung up on; the gateway grew by %d MiB", answered.Load(), hungUp.Load(), max(grown, 0))
}

// memory is what the gateway's process holds.
func (s *street) memory() int64 {
	s.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.replica.Command.Process.Pid))
	if err != nil {
		s.Error(err)
		return 0
	}
	fields := strings.Fields(string(text))
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		s.Error(err)
	}
	return pages * int64(os.Getpagesize())
}

// invalid sends what does not fit, what has too many values, a name twice, no end and too
// many bytes. Each costs a token of tier starter's 5 a second, of which 10 are there.
func invalid(ctx context.Context, s *street) string {
	clumsy := s.attacker("starter")
	long := strings.Repeat("x", 60_000)
	bodies := []string{
		`{"amount":"much","payer_email":[` + strings.Repeat(`"`+long[:60]+`",`, 899) + `""]}`,
		`{"payer_email":[` + strings.Repeat("10000,", 9_999) + `0]}`,
		`{"payer_email":"` + long + `","amount":1,"amount":1}`,
		`{"payer_email":"` + long,
		`{"payer_email":"` + long + long + `"}`,
	}
	header := http.Header{"Authorization": {"Bearer " + clumsy.Key}}
	var got codes
	begun := time.Now()
	paced(ctx, time.Second/100, func(n int) {
		got.add(clumsy.Send(s.Context(), http.MethodPost, "/payments/create", []byte(bodies[n%len(bodies)]), header))
	})
	judged := got.counts["`"+string(fault.InvalidRequest)+"`"] + got.counts["`"+string(fault.PayloadTooLarge)+"`"]
	if most := 10 + 5*time.Since(begun).Seconds(); float64(judged) > most {
		s.Errorf("%d invalid bodies were judged, want at most %.0f: %s", judged, most, &got)
	}
	return got.String()
}

// tries has the hostile plugin try something, and returns what it got.
func (s *street) tries(by harness.Shop, order harness.Fields) int {
	s.Helper()
	a := by.Ask(s, "/hostile/try", order)
	var told struct{ Got int }
	if err := json.Unmarshal(a.Data, &told); err != nil || !a.Success {
		s.Errorf("the hostile plugin: %s", a)
	}
	return told.Got
}

// follower is a merchant with an account at the hostile plugin.
func (s *street) follower() harness.Shop {
	s.Helper()
	shop := s.attacker("scale")
	s.follow(shop, "live")
	return shop
}

// follow gives a merchant an account at the hostile plugin.
func (s *street) follow(shop harness.Shop, mode string) {
	s.Helper()
	s.replica.MustRun(s, `{"api_key": "any"}`, nil, "connection", "set", shop.MerchantID, "hostile", "--mode", mode, "--credentials-file", "-", "--unverified")
}

func shouting(ctx context.Context, s *street) string {
	by := s.follower()
	before, written := len(s.replica.Log.String()), 0
	for ctx.Err() == nil {
		written += s.tries(by, harness.Fields{"shout": true, "read": []string{}})
	}
	logged := len(s.replica.Log.String()) - before
	if limit := 256 << 10 * int(s.lasts.Seconds()); logged > limit {
		s.Errorf("%d bytes were logged of %d", logged, written)
	}
	return fmt.Sprintf("%.1f MiB written, %.1f MiB in the log, all else of that time among it", float64(written)/(1<<20), float64(logged)/(1<<20))
}

func reading(ctx context.Context, s *street) string {
	by := s.follower()
	gateway := fmt.Sprintf("/proc/%d/", s.replica.Command.Process.Pid)
	secrets := []string{gateway + "environ", gateway + "mem", gateway + "maps", gateway + "fd/0", gateway + "cmdline", gateway + "root/etc/passwd", "/etc/passwd"}
	files, err := filepath.Glob(filepath.Join(s.Dir, "*.*")) // tokens, keyset, database URL, configuration
	if err != nil || len(files) < 5 {
		s.Fatalf("%v: %v", files, err)
	}
	secrets = append(secrets, files...)
	tries, got := 0, 0
	for tick := time.NewTicker(100 * time.Millisecond); ctx.Err() == nil; <-tick.C {
		tries += len(secrets)
		got += s.tries(by, harness.Fields{"read": secrets})
	}
	if got > 0 {
		s.Errorf("the plugin has read %d of %d files", got, tries)
	}
	return fmt.Sprintf("%d of %d reads got anything", got, tries)
}

// processes are those of the hostile plugin.
func (s *street) processes() []harness.Process {
	var all []harness.Process
	for _, one := range s.replica.Processes(s) {
		if one.Plays("hostile", false) {
			all = append(all, one)
		}
	}
	return all
}

// exchanged puts another binary in the place of the approved one and back, and looks at
// what runs. The other one would work alike.
func exchanged(ctx context.Context, s *street) string {
	path := s.hostile.Path
	approved, err := os.ReadFile(path)
	if err != nil {
		s.Fatal(err)
	}
	right, other := path+"-right", path+"-other"
	if err := errors.Join(os.Rename(path, right), os.WriteFile(other, append(bytes.Clone(approved), 0), 0o700)); err != nil {
		s.Fatal(err)
	}
	leads := func(to string) {
		if err := errors.Join(os.Symlink(to, path+"-new"), os.Rename(path+"-new", path)); err != nil {
			s.Error(err)
		}
	}
	exchanging, end := context.WithCancel(s.Context())
	var flipping sync.WaitGroup
	flipping.Go(func() {
		for tick := time.NewTicker(5 * time.Millisecond); exchanging.Err() == nil; <-tick.C {
			leads(other)
			leads(right)
		}
	})
	seen, since := map[int]bool{}, time.Now()
	for tick := time.NewTicker(50 * time.Millisecond); ctx.Err() == nil || len(seen) == 0 && time.Since(since) < patience; <-tick.C {
		for _, one := range s.processes() {
			if seen[one.PID] {
				continue // it was judged and killed
			}
			binary, err := os.ReadFile(fmt.Sprintf("/proc/%d/exe", one.PID))
			if err != nil {
				continue // it has ended just now
			}
			if sum := sha256.Sum256(binary); hex.EncodeToString(sum[:]) == s.hostile.SHA256 {
				seen[one.PID] = true
				harness.KillProcess(s, one)
			} else if bytes.HasPrefix(binary, approved[:64]) && len(binary) == len(approved)+1 {
				s.Error("a binary runs that nobody has approved")
			}
		}
	}
	end()
	flipping.Wait()
	if len(seen) == 0 {
		s.Errorf("nothing was started in %v", patience)
	}
	return fmt.Sprintf("%d starts, each of the approved binary", len(seen))
}

// broken has the hostile plugin stop answering and end, while the missing one is missing
// since the start.
func broken(ctx context.Context, s *street) string {
	hung, killed, since := 0, 0, time.Now()
	for tick := time.NewTicker(200 * time.Millisecond); ctx.Err() == nil || killed == 0 && time.Since(since) < patience; <-tick.C {
		for _, one := range s.processes() {
			if hung > killed {
				harness.KillProcess(s, one)
				killed++
			} else if err := syscall.Kill(one.PID, syscall.SIGSTOP); err == nil {
				hung++
			}
		}
		if err := s.replica.Admin().Ready(s.Context()); err != nil {
			s.Errorf("not ready for a plugin: %v", err)
		}
	}
	if killed == 0 {
		s.Errorf("nothing could be killed in %v", patience)
	}
	return fmt.Sprintf("hung %d times, killed %d times; ready all the time", hung, killed)
}

func unfit(ctx context.Context, s *street) string {
	unready := func(what string) {
		harness.Await(s, patience, "not ready: "+what, func() bool {
			err := s.replica.Admin().Ready(s.Context())
			return err != nil && strings.Contains(err.Error(), what)
		})
		a := s.merchant.Ask(s, "/payments/create", s.merchant.PaymentBody(nil))
		if a.Success || a.Sent != fault.SentNo || a.Retry != fault.RetryLater {
			s.Errorf("a payment while the database %s: %s", what, a)
		}
	}
	ready := func() {
		harness.Await(s, patience, "readiness", func() bool { return s.replica.Admin().Ready(s.Context()) == nil })
	}
	half := func() { <-time.After(s.lasts / 2) } // how long it lasts is what the attack is about
	s.database.ReadOnly(s.T, true)
	unready("takes no writes")
	half()
	s.database.ReadOnly(s.T, false)
	ready()
	var version int64
	s.replica.QueryRow(s, &version, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (1000, TRUE) RETURNING version_id")
	unready("has the schema 1000")
	half()
	s.replica.QueryRow(s, &version, "DELETE FROM goose_db_version WHERE version_id = 1000 RETURNING version_id")
	ready()
	<-ctx.Done()
	return "not ready for as long as nothing could be paid"
}

// beforeTwo puts haproxy before the replica and another one.
func beforeTwo(s *street) (harness.Shop, func()) {
	at := harness.Addresses{Listen: harness.FreeAddress(s), Console: harness.FreeAddress(s)}
	second := s.launch(at)
	s.Join(s, second)
	front := harness.NewHAProxy(s, s.at, at)
	shop := s.merchant
	shop.Program = &harness.Program{Document: harness.Document{APIURL: front.URL}}
	return shop, func() {
		if s.replica.Running() || !second.Running() {
			s.Error("the wrong replica was stopped")
		}
	}
}

func stopped(ctx context.Context, s *street) string {
	begun := time.Now()
	s.replica.Stop(s)
	took := time.Since(begun)
	<-ctx.Done()
	return fmt.Sprintf("it ended after %.1f s", took.Seconds())
}
