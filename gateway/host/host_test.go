package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

func group() int { return syscall.Getpgrp() }

func TestCallLookupNotify(t *testing.T) {
	t.Parallel()
	seen := make(chan Observation, 3)
	h := startHost(t, calm, Config{Specs: []Spec{testSpec("one")}, Observe: func(o Observation) { seen <- o }})

	if r := h.Call(t.Context(), ofOne, callTo("accept"), patience); r.Outcome != sdk.Pending || r.ProviderReference != "p-r1" {
		t.Errorf("call: %+v", r)
	}
	lookup := sdk.Lookup{Operation: "/test/pay", Reference: "r1", Connection: sdk.Connection{Mode: "live"}}
	if f := h.Lookup(t.Context(), ofOne, lookup, patience); f.Status != sdk.StatusPending || f.Reference != "r1" {
		t.Errorf("lookup: %+v", f)
	}
	ack, err := h.Notify(t.Context(), "one", sdk.Notification{
		Connection: sdk.Connection{Mode: "live"}, Header: map[string][]string{"X-Reference": {"r1"}}, Body: []byte("hello"),
	}, patience)
	if err != nil || ack.Status != 200 || string(ack.Body) != "hello" || len(ack.Updates) != 1 || ack.Updates[0].Reference != "r1" {
		t.Errorf("notify: %+v, %v", ack, err)
	}
	want := []Observation{
		{Provider: "one", Mode: "test", Operation: "/test/pay", Method: "call", Outcome: "pending"},
		{Provider: "one", Mode: "live", Operation: "/test/pay", Method: "lookup", Outcome: "pending"},
		{Provider: "one", Mode: "live", Method: "notify", Outcome: "answered"},
	}
	for _, w := range want {
		got := <-seen
		if got.Took <= 0 {
			t.Errorf("%s took no time", got.Method)
		}
		got.Took = 0
		if got != w {
			t.Errorf("observed %+v, want %+v", got, w)
		}
	}
}

func TestManifestsAndStatus(t *testing.T) {
	t.Parallel()
	h := startHost(t, calm, Config{Specs: []Spec{testSpec("one"), testSpec("two")}})
	var names []string
	for i, m := range h.Manifests() {
		s := h.Status()[i]
		names = append(names, m.Name)
		if s.Provider != m.Name || s.Digest != m.Digest() || s.Version != "1.2.3" || !s.Running || s.PID == 0 || s.Since.IsZero() || s.MaxInFlight != 256 {
			t.Errorf("status %+v of %s", s, m.Name)
		}
	}
	if !slices.Equal(names, []string{"one", "two"}) {
		t.Errorf("got %v, want the order of the specs", names)
	}
}

func TestProcessInheritsNothing(t *testing.T) {
	t.Parallel()
	if os.Getenv("PATH") == "" {
		t.Fatal("the test needs a host with an environment")
	}
	w := worldOf(t, one(t, calm))
	allowed := []string{
		"TMPDIR", "GOMEMLIMIT", envRole, envName, sdk.EnvHostPID, sdk.Handshake.MagicCookieKey, "PLUGIN_MIN_PORT", "PLUGIN_MAX_PORT",
		"PLUGIN_PROTOCOL_VERSIONS", "PLUGIN_CLIENT_CERT", "PLUGIN_UNIX_SOCKET_DIR", "GOCOVERDIR",
	}
	for _, pair := range w.Env {
		if name, _, _ := strings.Cut(pair, "="); !slices.Contains(allowed, name) {
			t.Errorf("the plugin sees %s", name)
		}
	}
	if !slices.ContainsFunc(w.Env, func(p string) bool { return strings.HasPrefix(p, "PLUGIN_CLIENT_CERT=") }) {
		t.Error("the transport has no certificate")
	}
	if len(w.Args) != 1 || !strings.HasSuffix(w.Args[0], "plugins/one") {
		t.Errorf("argv is %q, want its only word to end in plugins/one", w.Args)
	}
	if w.Group != w.PID {
		t.Errorf("process %d is in group %d: a Ctrl-C in the terminal would hit it", w.PID, w.Group)
	}
}

func TestShownPath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/opt/bin/payments-v2": "/opt/bin/plugins/payments", "/opt/plugins/other": "/opt/plugins/payments", "/x": "/plugins/payments",
	} {
		if got := shownPath(path, "payments"); got != want {
			t.Errorf("%s is shown as %s, want %s", path, got, want)
		}
	}
}

// TestBrokenPluginIsAlone: whatever is wrong with one plugin, the others are started and
// called, and it is what its status says.
func TestBrokenPluginIsAlone(t *testing.T) {
	t.Parallel()
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(manifestOf("one"))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		change func(*Spec)
		want   string
	}{
		"another binary":    {func(s *Spec) { s.Path = other }, "checksums did not match"},
		"no checksum":       {func(s *Spec) { s.SHA256 = "" }, "64 hex digits"},
		"no binary":         {func(s *Spec) { s.Path = other + "-none" }, "no such file"},
		"another digest":    {func(s *Spec) { s.ManifestDigest = strings.Repeat("0", 64) }, "its manifest has digest " + m.Digest()},
		"another name":      {func(s *Spec) { s.Env[1] = envName + "=two" }, `its manifest is that of "two"`},
		"a broken manifest": {func(s *Spec) { s.Env[1] = envName + "=Not A Name" }, "lower-case letters"},
		"no plugin at all":  {func(s *Spec) { s.Env[0] = envRole + "=mute" }, "did not start within 10s"},
		"ends at once":      {func(s *Spec) { s.Env[0] = envRole + "=dead" }, "its last lines: nothing to do"},
		"another protocol":  {func(s *Spec) { s.Env[0] = envRole + "=older" }, "incompatible API version with plugin"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := testSpec("one")
			c.change(&spec)
			tune := calm
			if spec.Env[0] == envRole+"=mute" {
				tune.start = 10 * time.Second // the other one's, too
			}
			h := startHost(t, tune, Config{Specs: []Spec{spec, testSpec("well")}})
			until(t, "the other one runs", func() bool { return h.Status()[1].Running })
			s := h.Status()[0]
			if s.Running || s.Down.IsZero() || !strings.Contains(s.LastFault, "plugin one: ") || !strings.Contains(s.LastFault, c.want) {
				t.Errorf("status %+v, want a fault of plugin one with %q", s, c.want)
			}
			if err := h.Down(); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "plugin well") {
				t.Errorf("down: %v", err)
			}
			if r := h.Call(t.Context(), Use{Provider: "well"}, callTo("accept"), patience); r.Outcome != sdk.Pending {
				t.Errorf("the other one: %+v", r)
			}
			if err := h.Available(ofOne, callTo("").Connection); err == nil {
				t.Error("it is available")
			}
			asked := time.Now()
			if r := h.Call(t.Context(), ofOne, callTo("accept"), patience); r.Outcome != sdk.NotSent || time.Since(asked) > tune.restartWait/2 {
				t.Errorf("a call: %+v after %v, want not sent at once", r, time.Since(asked))
			}
		})
	}
}

// TestComesUpLate: a plugin that is mended is started without anybody asking, and its
// manifest is offered before it is called. One that can't be offered stays down.
func TestComesUpLate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "plugin")
	late, refused := testSpec("late"), testSpec("refused")
	late.Path, refused.Path = path, path
	h := startHost(t, calm, Config{Specs: []Spec{late, refused, testSpec("well")}})
	offered := make(chan []string, 100)
	use := func(all []*manifest.Manifest) (func(), error) {
		var names []string
		for _, m := range all {
			if m.Name == "refused" {
				return nil, errors.New("another one has these paths")
			}
			names = append(names, m.Name)
		}
		return func() { offered <- names }, nil
	}
	if err := h.Offer(use); err != nil {
		t.Fatal(err)
	}
	if got := <-offered; !slices.Equal(got, []string{"well"}) {
		t.Errorf("at first %v is offered", got)
	}
	if err := os.Symlink(binary(), path); err != nil {
		t.Fatal(err)
	}
	if got := <-offered; !slices.Equal(got, []string{"late", "well"}) {
		t.Errorf("then %v is offered", got)
	}
	until(t, "it is called", func() bool {
		return h.Call(t.Context(), Use{Provider: "late"}, callTo("accept"), patience).Outcome == sdk.Pending
	})
	until(t, "the other is refused", func() bool { return strings.Contains(h.Status()[1].LastFault, "another one has these paths") })
	s := h.Status()
	if s[0].Restarts != 0 || !s[0].Down.IsZero() || s[1].Running {
		t.Errorf("status %+v", s)
	}
}

// TestClashAtTheStart: of plugins with one path the one stays that was known before, then
// the first of the specs; the others are kept out, and come up once the path is free.
func TestClashAtTheStart(t *testing.T) {
	t.Parallel()
	m, err := manifest.Parse(manifestOf("known"))
	if err != nil {
		t.Fatal(err)
	}
	known := testSpec("known")
	known.ManifestDigest, known.Manifest = m.Digest(), m
	names := func(all []*manifest.Manifest) (names []string) {
		for _, m := range all {
			names = append(names, m.Name)
		}
		return names
	}
	offers := func(all []*manifest.Manifest) error {
		if len(all) > 1 {
			return fmt.Errorf("the same path: %v", names(all))
		}
		return nil
	}
	for what, specs := range map[string][]Spec{
		"known": {testSpec("new"), testSpec("newer"), known}, "new": {testSpec("new"), testSpec("newer")},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			h := startHost(t, calm, Config{Specs: specs, Offers: offers})
			if got := names(h.Manifests()); !slices.Equal(got, []string{what}) {
				t.Errorf("%v is offered", got)
			}
			if err := h.Offer(func(all []*manifest.Manifest) (func(), error) { return func() {}, offers(all) }); err != nil {
				t.Fatal(err)
			}
			for _, s := range h.Status() {
				if down := !s.Running && strings.Contains(s.LastFault, "the same path"); down == (s.Provider == what) {
					t.Errorf("%s: running %v, %q", s.Provider, s.Running, s.LastFault)
				}
			}
			if r := h.Call(t.Context(), Use{Provider: what}, callTo("accept"), patience); r.Outcome != sdk.Pending {
				t.Errorf("its call: %+v", r)
			}
			if r := h.Call(t.Context(), Use{Provider: "newer"}, callTo("accept"), patience); r.Outcome != sdk.NotSent {
				t.Errorf("a call of the one that is kept out: %+v", r)
			}
			if err := h.Remove(t.Context(), what); err != nil {
				t.Fatal(err)
			}
			until(t, "another one has the path", func() bool { return len(h.Manifests()) == 1 && h.Manifests()[0].Name != what })
		})
	}
}

// TestKnownManifest: what a plugin that can't be started offers is known where its
// approved manifest is, and nobody waits for one that hangs.
func TestKnownManifest(t *testing.T) {
	t.Parallel()
	m, err := manifest.Parse(manifestOf("one"))
	if err != nil {
		t.Fatal(err)
	}
	spec := testSpec("one")
	spec.Env[0], spec.ManifestDigest, spec.Manifest = envRole+"=mute", m.Digest(), m
	tune := calm
	tune.start, tune.patience = time.Hour, time.Millisecond
	h := startHost(t, tune, Config{Specs: []Spec{spec}})
	if got := h.Manifests(); len(got) != 1 || got[0].Digest() != m.Digest() || h.Status()[0].Version != "1.2.3" || h.Status()[0].Running {
		t.Errorf("manifests %v, status %+v", got, h.Status()[0])
	}
}

func TestStartAcceptsThePinnedDigest(t *testing.T) {
	t.Parallel()
	m, err := manifest.Parse(manifestOf("one"))
	if err != nil {
		t.Fatal(err)
	}
	spec := testSpec("one")
	spec.ManifestDigest = m.Digest()
	h := startHost(t, calm, Config{Specs: []Spec{spec}})
	if got := h.Manifests()[0].Digest(); got != m.Digest() {
		t.Errorf("digest %s, want %s", got, m.Digest())
	}
}

// TestStartCut: whoever gives up the start leaves nothing running.
func TestStartCut(t *testing.T) {
	t.Parallel()
	path, came, died := deathWatch(t)
	well, hangs := testSpec("well", envDial+"="+path), testSpec("hangs")
	hangs.Env[0] = envRole + "=mute"
	ctx, cut := context.WithTimeout(t.Context(), patience)
	defer cut()
	go func() {
		select {
		case <-came:
			cut()
		case <-ctx.Done():
		}
	}()
	tune := calm
	tune.start = time.Hour
	if _, err := start(ctx, Config{Specs: []Spec{well, hangs}}, tune); !errors.Is(err, context.Canceled) {
		t.Fatalf("started: %v", err)
	}
	select {
	case <-died:
	case <-time.After(patience):
		t.Error("the one that came up still runs")
	}
}

func TestSameNameTwice(t *testing.T) {
	t.Parallel()
	if _, err := start(t.Context(), Config{Specs: []Spec{testSpec("one"), testSpec("one")}}, calm); err == nil {
		t.Error("started")
	}
}

func TestCloseDrains(t *testing.T) {
	t.Parallel()
	h := one(t, calm)
	ctx, cut := context.WithCancel(t.Context())
	result := make(chan sdk.Result, 1)
	go func() { result <- h.Call(ctx, ofOne, callTo("hang"), patience) }()
	inFlight(t, h, 1)

	closed := make(chan error, 1)
	go func() { closed <- h.Close(context.Background()) }()
	until(t, "calls are turned away", func() bool {
		r := h.Call(t.Context(), ofOne, callTo("accept"), patience)
		return r.Outcome == sdk.NotSent
	})
	select {
	case err := <-closed:
		t.Fatalf("Close returned %v with a call in flight", err)
	default:
	}
	cut()
	<-result
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
	if h.Status()[0].Running {
		t.Error("the process still runs")
	}
}

func TestCloseCutsAtItsDeadline(t *testing.T) {
	t.Parallel()
	h := one(t, calm)
	result := background(t, h, "deaf")
	inFlight(t, h, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := h.Close(ctx); err == nil || !strings.Contains(err.Error(), "1 calls were cut") {
		t.Errorf("Close: %v", err)
	}
	if r := <-result; r.Outcome != sdk.Unknown {
		t.Errorf("the cut call is %+v, want unknown", r)
	}
}

// TestHostKilled kills a host with -9; its plugin must not outlive it.
func TestHostKilled(t *testing.T) {
	t.Parallel()
	path, _, died := deathWatch(t)
	command := runChild(t, envRole+"=host", envDial+"="+path)
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-died:
	case <-time.After(3 * time.Second):
		t.Error("the plugin lives 3 s after its host")
	}
}
