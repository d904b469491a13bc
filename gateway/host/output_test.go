package host

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
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

func TestOutputCutsIntoLines(t *testing.T) {
	t.Parallel()
	got := logged(func(o *output) {
		a, b := o.stream(), o.stream()
		for _, part := range []string{"one", " line\ntwo\n\nthr"} {
			fmt.Fprint(a, part)
		}
		fmt.Fprint(b, "other\n")
		fmt.Fprint(a, "ee\n")
		fmt.Fprint(a, strings.Repeat("x", maxLine)+"yyy")
		fmt.Fprint(a, "zzz\nend\n")
	})
	want := "level=INFO msg=\"one line\"\nlevel=INFO msg=two\nlevel=INFO msg=other\nlevel=INFO msg=three\nlevel=INFO msg=" +
		strings.Repeat("x", maxLine) + "\nlevel=INFO msg=end\n"
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
		if r := h.Call(t.Context(), "one", call, patience); string(r.Data) == "" {
			t.Fatalf("got %+v", r)
		}
	}
	if n := h.Status()[0].Restarts; n != 0 {
		t.Errorf("%d restarts", n)
	}
}
