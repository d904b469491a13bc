package callback

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// examples are what merchants are shown.
const examples = "../../deploy/examples/verify-callback"

// TestVerifyTakesWhatSignMadeAndNothingElse is the receiver's side in Go.
func TestVerifyTakesWhatSignMadeAndNothingElse(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	switched := Secrets{Current: secretA, Next: secretB, SignWithNext: true}
	for name, c := range map[string]struct {
		secrets Secrets
		age     time.Duration
		change  func(http.Header, *[]byte)
		holds   []Secret
		says    string // empty where it is verified
	}{
		"as sent":                  {secrets: onlyA, holds: []Secret{secretA}},
		"one of several":           {secrets: onlyA, holds: []Secret{secretB, secretA}},
		"at the last moment":       {secrets: onlyA, age: 5 * time.Minute, holds: []Secret{secretA}},
		"a clock that is behind":   {secrets: onlyA, age: -5 * time.Minute, holds: []Secret{secretA}},
		"switched, new secret":     {secrets: switched, holds: []Secret{secretB}},
		"switched, old secret":     {secrets: switched, holds: []Secret{secretA}, says: "X-Svc-Signature is by none"},
		"too old":                  {secrets: onlyA, age: 5*time.Minute + time.Second, holds: []Secret{secretA}, says: "webhook-timestamp is more than"},
		"too new":                  {secrets: onlyA, age: -5*time.Minute - time.Second, holds: []Secret{secretA}, says: "webhook-timestamp is more than"},
		"another's secret":         {secrets: onlyA, holds: []Secret{secretB}, says: "X-Svc-Signature is by none"},
		"no secret":                {secrets: onlyA, says: "X-Svc-Signature is by none"},
		"changed body":             {secrets: onlyA, holds: []Secret{secretA}, change: func(_ http.Header, b *[]byte) { *b = append(*b, ' ') }, says: "X-Svc-Signature is by none"},
		"changed id":               {secrets: onlyA, holds: []Secret{secretA}, change: setTo("webhook-id", "evt_2"), says: "webhook-signature is by none"},
		"changed time":             {secrets: onlyA, holds: []Secret{secretA}, change: setTo("webhook-timestamp", "1700000001"), says: "webhook-signature is by none"},
		"no time":                  {secrets: onlyA, holds: []Secret{secretA}, change: setTo("webhook-timestamp", "soon"), says: "webhook-signature is by none"},
		"no headers of webhooks":   {secrets: onlyA, holds: []Secret{secretA}, change: dropWebhook, says: "no webhook-id"},
		"no signature of our own":  {secrets: onlyA, holds: []Secret{secretA}, change: setTo("X-Svc-Signature", ""), says: "no X-Svc-Signature"},
		"signature of another day": {secrets: onlyA, holds: []Secret{secretA}, change: setTo("webhook-signature", "v1,bm8="), says: "webhook-signature is by none"},
	} {
		m := messageTo("https://shop.example/")
		header := mustSign(t, m, c.secrets, now.Add(-c.age))
		if c.change != nil {
			c.change(header, &m.Body)
		}
		err := Verify("", header, m.Body, c.holds, now)
		if (err == nil) != (c.says == "") || err != nil && (!errors.Is(err, ErrUnverified) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	m := messageTo("https://shop.example/")
	if err := Verify("", mustSign(t, m, onlyA, now), m.Body, []Secret{"whsec_short"}, now); !errors.Is(err, ErrSecret) {
		t.Errorf("a secret that is none: %v, want ErrSecret", err)
	}
}

func setTo(name, value string) func(http.Header, *[]byte) {
	return func(h http.Header, _ *[]byte) { h.Set(name, value) }
}

const (
	bothRight    = "X-Svc-Signature: right\nwebhook-signature: right\n"
	bothWrong    = "X-Svc-Signature: wrong\nwebhook-signature: wrong\n"
	webhookAlone = "X-Svc-Signature: wrong\nwebhook-signature: right\n"
	svcAlone     = "X-Svc-Signature: right\nwebhook-signature: wrong\n"
)

// TestExamplesVerify runs each program that merchants are shown.
func TestExamplesVerify(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]struct {
		program []string
		debian  string // package with the interpreter
	}{
		"go":     {[]string{"go", "run", "verify.go"}, "golang-go"},
		"node":   {[]string{"node", "verify.mjs"}, "nodejs"},
		"php":    {[]string{"php", "verify.php"}, "php-cli"},
		"python": {[]string{"python3", "verify.py"}, "python3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(command.program[0])
			if err != nil {
				t.Skipf("%s is not on this machine; Debian has it in %s", command.program[0], command.debian)
			}
			program := append([]string{path}, command.program[1:]...)
			if name == "go" {
				program = []string{buildExample(t, path)}
			}
			testExample(t, program)
		})
	}
}

// buildExample spares a build for each case.
func buildExample(t *testing.T, goTool string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "verify")
	build := exec.CommandContext(t.Context(), goTool, "build", "-o", out, "verify.go")
	build.Dir = examples
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %s", err, text)
	}
	return out
}

func testExample(t *testing.T, program []string) {
	now := time.Now()
	rotating := Secrets{Current: secretA, Next: secretB}
	switched := Secrets{Current: secretA, Next: secretB, SignWithNext: true}
	for name, c := range map[string]struct {
		secrets Secrets
		at      time.Time
		change  func(http.Header, *[]byte)
		holds   []Secret
		want    string
	}{
		"as sent":                    {secrets: onlyA, at: now, holds: []Secret{secretA}, want: bothRight},
		"changed body":               {secrets: onlyA, at: now, holds: []Secret{secretA}, change: func(_ http.Header, b *[]byte) { *b = append(*b, ' ') }, want: bothWrong},
		"another's secret":           {secrets: onlyA, at: now, holds: []Secret{secretB}, want: bothWrong},
		"changed id":                 {secrets: onlyA, at: now, holds: []Secret{secretA}, change: func(h http.Header, _ *[]byte) { h.Set("webhook-id", "evt_2") }, want: svcAlone},
		"no headers of webhooks":     {secrets: onlyA, at: now, holds: []Secret{secretA}, change: dropWebhook, want: svcAlone},
		"replayed ten minutes later": {secrets: onlyA, at: now.Add(-10 * time.Minute), holds: []Secret{secretA}, want: svcAlone},
		"from the future":            {secrets: onlyA, at: now.Add(10 * time.Minute), holds: []Secret{secretA}, want: svcAlone},
		"no signatures":              {secrets: onlyA, at: now, holds: []Secret{secretA}, change: func(h http.Header, _ *[]byte) { clear(h); h.Set("X-Other", "1") }, want: bothWrong},
		"rotation, both secrets":     {secrets: rotating, at: now, holds: []Secret{secretA, secretB}, want: bothRight},
		"rotation, old secret":       {secrets: rotating, at: now, holds: []Secret{secretA}, want: bothRight},
		"rotation, new secret":       {secrets: rotating, at: now, holds: []Secret{secretB}, want: webhookAlone},
		"switched, both secrets":     {secrets: switched, at: now, holds: []Secret{secretA, secretB}, want: bothRight},
		"switched, old secret":       {secrets: switched, at: now, holds: []Secret{secretA}, want: webhookAlone},
		"switched, new secret":       {secrets: switched, at: now, holds: []Secret{secretB}, want: bothRight},
	} {
		m := messageTo("https://shop.example/")
		m.Body = []byte("{\"name\":\"Toko \u00e9 \u5e97\",\"text\":\"a\\nb\"}\n")
		header := mustSign(t, m, c.secrets, c.at)
		if c.change != nil {
			c.change(header, &m.Body)
		}
		got, code := runExample(t, program, header, m.Body, c.holds)
		if got != c.want || (code == 0) != (c.want == bothRight) {
			t.Errorf("%s: exit code %d, %q; want %q", name, code, got, c.want)
		}
	}
}

func dropWebhook(h http.Header, _ *[]byte) {
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		h.Del(name)
	}
}

func runExample(t *testing.T, program []string, header http.Header, body []byte, holds []Secret) (string, int) {
	t.Helper()
	var head bytes.Buffer
	if err := header.Write(&head); err != nil {
		t.Fatal(err)
	}
	dir, secrets := t.TempDir(), make([]string, 0, len(holds))
	for _, secret := range holds {
		secrets = append(secrets, string(secret))
	}
	headers, bodyFile := filepath.Join(dir, "headers"), filepath.Join(dir, "body")
	for path, content := range map[string][]byte{headers: head.Bytes(), bodyFile: body} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), program[0], append(program[1:], headers, bodyFile)...)
	command.Dir = examples
	command.Env = append(os.Environ(), "CALLBACK_SECRET="+strings.Join(secrets, " "))
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || stderr.Len() > 0 {
		t.Fatalf("%v: %s", err, &stderr)
	}
	return string(out), command.ProcessState.ExitCode()
}

// TestOpenSSLLineOfTheREADME runs the line that merchants are shown.
func TestOpenSSLLineOfTheREADME(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not on this machine; Debian has it in openssl")
	}
	readme, err := os.ReadFile(filepath.Join(examples, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```sh\n")
	line, _, ok := strings.Cut(rest, "```")
	if !ok || !strings.HasPrefix(line, "openssl dgst ") {
		t.Fatalf("the README has no line of openssl: %q", line)
	}
	m, dir := messageTo("https://shop.example/"), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "body.json"), m.Body, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "sh", "-c", line)
	command.Dir = dir
	command.Env = append(os.Environ(), "CALLBACK_SECRET="+string(secretA))
	out, err := command.CombinedOutput()
	want := mustSign(t, m, onlyA, time.Now()).Get("X-Svc-Signature")
	if got := strings.TrimSpace(string(out)); err != nil || got != want {
		t.Errorf("%v: %q, want %q", err, got, want)
	}
}
