package host

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

func logged(write func(*output)) string {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	write(&output{log: log})
	return text.String()
}

func TestOutputLevels(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		`{"@level":"error","@message":"broken","@module":"m","@timestamp":"2026-01-02T03:04:05Z","code":5}`: "level=ERROR msg=broken code=5\n",
		`{"@level":"trace","@message":"step"}`:                     "level=DEBUG msg=step\n",
		`{"time":"2026-01-02T03:04:05Z","level":"WARN","msg":"m"}`: "level=WARN msg=m\n",
		`{"@message":1,"@level":2}`:                                `level=INFO msg="{\"@message\":1,\"@level\":2}"` + "\n",
		`{"other":true}`:                                           `level=INFO msg="{\"other\":true}"` + "\n",
		"plain words":                                              "level=INFO msg=\"plain words\"\n",
		"panic: no":                                                "level=ERROR msg=\"panic: no\"\n",
		"fatal error: no":                                          "level=ERROR msg=\"fatal error: no\"\n",
	}
	for line, want := range cases {
		if got := logged(func(o *output) { fmt.Fprintln(o.stream(), line) }); got != want {
			t.Errorf("%s\n got %s want %s", line, got, want)
		}
	}
}

func TestOutputKeepsAStackTogether(t *testing.T) {
	t.Parallel()
	got := logged(func(o *output) { fmt.Fprint(o.stream(), "before\npanic: no\n\ngoroutine 1 [running]:\nmain.main()\n") })
	if n := strings.Count(got, "level=ERROR"); n != 3 {
		t.Errorf("%d lines are errors, want the 3 from the panic on:\n%s", n, got)
	}
}

// TestAStackEnds: what a process writes after a stack, or after a line that only begins
// like one, is no error.
func TestAStackEnds(t *testing.T) {
	t.Parallel()
	stack := `panic: no [recovered]
	panic: no
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x4f2b1c]

goroutine 1 [running]:
panic({0x4a2b60?, 0x4e1230?})
	/usr/local/go/src/runtime/panic.go:785 +0x132
example.com/shop.(*adapter).pay(0xc000012345, {0x1, 0x2})
	/src/adapter.go:12 +0x1d
created by main.main in goroutine 1
	/src/main.go:9 +0x1d
`
	got := logged(func(o *output) { fmt.Fprint(o.stream(), stack+"it goes on (a little)\npanic: is only a word\nhere\n") })
	want := strings.Count(stack, "\n") - 1 + 1 // of its lines one is empty
	if n := strings.Count(got, "level=ERROR"); n != want || strings.Count(got, "level=INFO") != 2 {
		t.Errorf("%d lines are errors, want %d:\n%s", n, want, got)
	}
}

// TestLinesThatAreLeftOutCostNothing: however fast a plugin writes, nothing is made of it.
func TestLinesThatAreLeftOutCostNothing(t *testing.T) { //nolint:paralleltest // it counts allocations
	synctest.Test(t, func(t *testing.T) {
		s := (&output{log: slog.New(slog.DiscardHandler), secrets: &secrets{}}).stream()
		line := append(bytes.Repeat([]byte("x"), 1000), '\n')
		write := func() { _, _ = s.Write(line) }
		for range 2 * lineRate {
			write()
		}
		if n := testing.AllocsPerRun(1000, write); n != 0 {
			t.Errorf("%v allocations a line", n)
		}
		time.Sleep(time.Second) // what was left out is told
	})
}

func TestOutputCutsIntoLines(t *testing.T) {
	t.Parallel()
	got := logged(func(o *output) {
		a, b := o.stream(), o.stream()
		for _, part := range []string{"one", " line\ntwo\n\nthr"} {
			fmt.Fprint(a, part)
		}
		fmt.Fprint(b, "other\n")
		fmt.Fprint(a, "ee\n")
		fmt.Fprint(a, strings.Repeat("x", maxText)+"yyy")
		fmt.Fprint(a, strings.Repeat("z", 2*maxText)+"\nend\n")
	})
	want := "level=INFO msg=\"one line\"\nlevel=INFO msg=two\nlevel=INFO msg=other\nlevel=INFO msg=three\nlevel=INFO msg=" +
		strings.Repeat("x", maxText) + "\nlevel=INFO msg=end\n"
	if got != want {
		t.Errorf("got %d bytes, want %d:\n%.400s", len(got), len(want), got)
	}
}

func TestOutputRemembersLastWords(t *testing.T) {
	t.Parallel()
	o := &output{log: slog.New(slog.DiscardHandler)}
	s := o.stream()
	for i := range tailSize + 2 {
		fmt.Fprintf(s, "%d\n", i)
	}
	if got := o.last(); got != "2; 3; 4; 5; 6; 7; 8; 9" {
		t.Errorf("got %q", got)
	}
}

// TestHostileOutput writes what makes go-plugin's own reader panic.
func TestHostileOutput(t *testing.T) {
	t.Parallel()
	h := one(t, calm)
	call := callTo("log")
	call.Body = []byte(`{"do":"log","text":"{\"@message\":1,\"@level\":{},\"@timestamp\":[]}\n"}`)
	for range 3 {
		if r := h.Call(t.Context(), ofOne, call, patience); string(r.Data) == "" {
			t.Fatalf("got %+v", r)
		}
	}
	if n := h.Status()[0].Restarts; n != 0 {
		t.Errorf("%d restarts", n)
	}
}

// TestOutputIsBounded: whatever a plugin writes, little of it is logged, and how much
// was left out is told.
func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const written = 200_000
		var volume int
		got := logged(func(o *output) {
			s := o.stream()
			for range written {
				n, _ := fmt.Fprintln(s, strings.Repeat("x", 1000))
				volume += n
			}
			time.Sleep(2 * time.Second) // not the very moment at which what was left out is told
			fmt.Fprintln(s, "again")
			synctest.Wait()
		})
		logged := strings.Count(got, "msg=xxx")
		if len(got) > 2*volumeRate || !strings.Contains(got, fmt.Sprintf(`level=WARN msg="%d lines left out"`, written-logged)) || !strings.HasSuffix(got, "msg=again\n") {
			t.Errorf("%d bytes became %d, %d lines:\n%.300s", volume, len(got), logged, got[max(0, len(got)-200):])
		}
		t.Logf("%d MB in a second became %d KB", volume>>20, len(got)>>10)
	})
}

func TestOutputHidesSecrets(t *testing.T) {
	t.Parallel()
	known := &secrets{}
	known.learn(sdk.Connection{MerchantID: "m", Mode: "live", Version: 1, Credentials: []byte(
		`{"secret_key": "xnd_production_1234", "base_url": "https://api.example.com", "pin": "1234", "paths": {"a": ["deep-secret<1>"]},
		"private_key": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n"}`)})
	for line, want := range map[string]string{
		"key xnd_production_1234, PIN 1234":                                          `msg="key [removed], PIN 1234"`,
		"xnd_production_1234xnd_production_1234":                                     "msg=[removed][removed]",
		`{"msg":"m","level":"WARN","x":"deep-secret<1>!"}`:                           "msg=m x=[removed]!",
		`{"msg":"m","x":"deep-secret\u003c1\u003e"}`:                                 "msg=m x=[removed]",
		"hkiG9w0BAQEFAASC":                                                           "msg=[removed]",
		`{"msg":"a\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC"}`:                            `msg="a\n[removed]\n[removed]"`,
		"at https://api.example.com":                                                 `msg="at https://api.example.com"`,
		strings.Repeat("xnd_production_1234", 2*maxText/19) + " xnd_production_1234": "msg=" + strings.Repeat("[removed]", maxText/19+1),
		"half of it: xnd_production":                                                 `msg="half of it: [removed]"`,
		strings.Repeat(".", maxText-5) + "xnd_production_1234":                       "msg=" + strings.Repeat(".", maxText-5) + "[remo",
	} {
		got := logged(func(o *output) {
			o.secrets = known
			fmt.Fprintln(o.stream(), line)
		})
		if !strings.HasSuffix(got, want+"\n") {
			t.Errorf("%.100s\n got %.200s want %.200s", line, got, want)
		}
	}
}

// TestPluginWritesASecret: what a call hands over is known from then on.
func TestPluginWritesASecret(t *testing.T) {
	t.Parallel()
	var text lockedBuffer
	h := startHost(t, calm, Config{Specs: []Spec{testSpec("one")}, Log: slog.New(slog.NewTextHandler(&text, nil))})
	call := callTo("log")
	call.Body = []byte(`{"do":"log","text":"my key is top-secret-key\n"}`)
	call.Connection.Credentials = []byte(`{"key":"top-secret-key"}`)
	if r := h.Call(t.Context(), ofOne, call, patience); r.Outcome != sdk.Pending {
		t.Fatalf("got %+v", r)
	}
	until(t, "both lines are logged", func() bool { return strings.Count(text.String(), "my key is [removed]") == 2 })
	if strings.Contains(text.String(), "top-secret-key") {
		t.Errorf("logged:\n%s", text.String())
	}
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestLinesHaveTheRequest: what a handler logs is found by the request that it is about.
func TestLinesHaveTheRequest(t *testing.T) {
	t.Parallel()
	var lines lockedBuffer
	h := startHost(t, calm, Config{Specs: []Spec{testSpec("one")}, Log: slog.New(slog.NewTextHandler(&lines, nil))})
	call := callTo("tell")
	call.RequestID = "req-7"
	h.Call(t.Context(), ofOne, call, patience)
	until(t, "the line arrives", func() bool {
		return strings.Contains(lines.String(), "level=WARN msg=told plugin=one request_id=req-7")
	})
}
