package clients_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
	"github.com/seed-f006e74d/gerbang/sdk/merchant"
)

// task is what a client is to do: a call, or to verify a callback.
type task struct {
	BaseURL    string            `json:"base_url"`
	Key        string            `json:"key"`
	MerchantID string            `json:"merchant_id"`
	TimeoutMS  int               `json:"timeout_ms"`
	Retries    int               `json:"retries"`
	Call       string            `json:"call,omitempty"`
	Request    json.RawMessage   `json:"request,omitempty"`
	Options    map[string]string `json:"options,omitempty"`
	Verify     *received         `json:"verify,omitempty"`
}

// received is a callback as it came.
type received struct {
	Headers map[string]string `json:"headers"` // lower-case names
	Body    []byte            `json:"body"`
	Secrets []string          `json:"secrets"`
}

// client is one that is installed in a project of its own.
type client struct {
	run     func(t *testing.T, tasks []task) []outcome
	program func(t *testing.T, name string) *exec.Cmd // of the README: pay or callback
}

// outcome is what came of a task.
type outcome map[string]any

var languages = []struct {
	name    string
	install func(t *testing.T) client
}{{"go", inGo}, {"typescript", inTypeScript}, {"php", inPHP}, {"python", inPython}}

const sources = harness.Root + "/sdk/merchant"

// blocks are what a README has of a language: its commands or its programs, in their order.
func blocks(t *testing.T, readme, language string, n int) [][]byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(sources, readme))
	if err != nil {
		t.Fatal(err)
	}
	var found [][]byte
	for _, block := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(text, -1) {
		found = append(found, block[1])
	}
	if len(found) != n {
		t.Fatalf("%s has %d blocks of %s, want %d", readme, len(found), language, n)
	}
	return found
}

// project makes an empty project outside of the repository, with what is packed of a client.
func project(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	command(t, absolute(t, harness.Root), "go", "run", "./sdk/merchant/pack", dir, name)
	return dir
}

// command runs a command in a directory, which must succeed.
func command(t *testing.T, dir, name string, arguments ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, arguments...)
	c.Dir = dir
	// Nothing that is installed needs a registry.
	c.Env = append(os.Environ(), "npm_config_audit=false", "PIP_NO_INDEX=1", "PIP_DISABLE_PIP_VERSION_CHECK=1",
		"COMPOSER_ALLOW_SUPERUSER=1", "COMPOSER_DISABLE_NETWORK=1", "COMPOSER_HOME="+filepath.Join(dir, ".composer"))
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, arguments, err, out)
	}
}

// put copies the program that runs tasks into a project.
func put(t *testing.T, dir, name string) {
	t.Helper()
	runner, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, name), runner)
}

// interpreted is a client whose programs an interpreter runs, with these arguments.
func interpreted(dir, runner string, programs map[string][]string, interpreter ...string) client {
	in := func(t *testing.T, arguments ...string) *exec.Cmd {
		t.Helper()
		all := append(slices.Clone(interpreter), arguments...)
		c := exec.CommandContext(t.Context(), all[0], all[1:]...)
		c.Dir = dir
		return c
	}
	return client{
		run:     func(t *testing.T, tasks []task) []outcome { t.Helper(); return external(t, in(t, runner), tasks) },
		program: func(t *testing.T, name string) *exec.Cmd { t.Helper(); return in(t, programs[name]...) },
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	whole, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

// external runs tasks in a program that reads them and prints what came of them.
func external(t *testing.T, command *exec.Cmd, tasks []task) []outcome {
	t.Helper()
	input, err := json.Marshal(tasks)
	if err != nil {
		t.Fatal(err)
	}
	command.Stdin = bytes.NewReader(input)
	var faults bytes.Buffer
	command.Stderr = &faults
	out, err := command.Output()
	var outcomes []outcome
	if err != nil || json.Unmarshal(out, &outcomes) != nil {
		t.Fatalf("%v\n%s%s", err, out, &faults)
	}
	return outcomes
}

// inGo runs tasks with the package itself, and the README's programs with what is packed.
func inGo(t *testing.T) client {
	t.Helper()
	dir := project(t, "go")
	command(t, dir, "go", "mod", "init", "shop.example/shop")
	command(t, dir, "sh", "-ec", string(blocks(t, "README.md", "sh", 1)[0]))
	programs := blocks(t, "README.md", "go", 2)
	for i, name := range []string{"pay", "callback"} {
		write(t, filepath.Join(dir, name, "main.go"), programs[i])
	}
	command(t, dir, "go", "build", "-mod=readonly", "-o", dir+"/bin/", "./pay", "./callback")
	return client{
		run: func(t *testing.T, tasks []task) []outcome {
			t.Helper()
			outcomes := make([]outcome, len(tasks))
			for i, one := range tasks {
				outcomes[i] = doInGo(t, one)
			}
			return outcomes
		},
		program: func(t *testing.T, name string) *exec.Cmd {
			t.Helper()
			return exec.CommandContext(t.Context(), filepath.Join(dir, "bin", name))
		},
	}
}

func doInGo(t *testing.T, one task) outcome {
	t.Helper()
	if one.Verify != nil {
		header := http.Header{}
		for name, value := range one.Verify.Headers {
			header.Set(name, value)
		}
		told, err := merchant.VerifyCallback(header, one.Verify.Body, one.Verify.Secrets...)
		if err != nil {
			return outcome{"unverified": errors.Is(err, merchant.ErrCallback)}
		}
		return plain(t, outcome{"callback": outcome{"id": told.ID, "event": told.Event, "data": told.Data}})
	}
	client := merchant.New(one.BaseURL, one.Key, one.MerchantID)
	client.Timeout, client.Retries, client.LongestWait = time.Duration(one.TimeoutMS)*time.Millisecond, one.Retries, 5*time.Second
	method := reflect.ValueOf(client).MethodByName(strings.ToUpper(one.Call[:1]) + one.Call[1:])
	if !method.IsValid() {
		t.Fatalf("there is no call %s", one.Call)
	}
	arguments := []reflect.Value{reflect.ValueOf(t.Context())}
	if one.Request != nil {
		request := reflect.New(method.Type().In(1))
		if err := json.Unmarshal(one.Request, request.Interface()); err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, request.Elem())
	}
	for name, option := range map[string]func(string) merchant.Option{"callback_url": merchant.WithCallbackURL, "idempotency_key": merchant.WithIdempotencyKey} {
		if value := one.Options[name]; value != "" {
			arguments = append(arguments, reflect.ValueOf(option(value)))
		}
	}
	returned := method.Call(arguments)
	err, _ := returned[1].Interface().(error)
	if refused, is := errors.AsType[*merchant.Error](err); is {
		return outcome{"error": map[string]any{"error_code": refused.ErrorCode, "sent": refused.Sent, "retry": refused.Retry}}
	}
	if none, is := errors.AsType[*merchant.NoAnswer](err); is {
		return outcome{"no_answer": none.Reference}
	}
	if err != nil {
		t.Fatal(err)
	}
	result := returned[0]
	return plain(t, outcome{
		"data": result.FieldByName("Data").Interface(), "message": result.FieldByName("Message").Interface(),
		"request_id": result.FieldByName("RequestID").Interface(), "replayed": result.FieldByName("Replayed").Interface(),
	})
}

// plain is a value as JSON has it.
func plain(t *testing.T, value outcome) outcome {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var again outcome
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	return again
}

// inTypeScript has one of the README's programs as an ECMAScript module, the other as CommonJS.
func inTypeScript(t *testing.T) client {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not on this machine; Debian has it in nodejs")
	}
	tools := absolute(t, harness.NodeTools(t))
	dir := project(t, "typescript")
	write(t, filepath.Join(dir, "package.json"), []byte(`{"type": "module"}`))
	command(t, dir, "sh", "-ec", string(blocks(t, "typescript/README.md", "sh", 1)[0]))
	programs := blocks(t, "typescript/README.md", "ts", 2)
	write(t, filepath.Join(dir, "pay.ts"), programs[0])
	write(t, filepath.Join(dir, "callback.cts"), programs[1])
	command(t, dir, filepath.Join(tools, "node_modules", ".bin", "tsc"), "pay.ts", "callback.cts", "--module", "nodenext", "--target", "es2022", "--strict", "--skipDefaultLibCheck",
		"--types", "node", "--typeRoots", filepath.Join(tools, "node_modules", "@types"), "--lib", "es2023,dom")
	put(t, dir, "run.mjs")
	return interpreted(dir, "run.mjs", map[string][]string{"pay": {"pay.js"}, "callback": {"callback.cjs"}}, "node")
}

func inPHP(t *testing.T) client {
	t.Helper()
	if _, err := exec.LookPath("php"); err != nil {
		t.Skip("php is not on this machine; Debian has it in php-cli")
	}
	dir := project(t, "php")
	write(t, filepath.Join(dir, "composer.json"), []byte("{}"))
	install := string(blocks(t, "php/README.md", "sh", 1)[0])
	if _, err := exec.LookPath("composer"); err != nil { // do without, as the README says
		install, _, _ = strings.Cut(install, "composer")
		write(t, filepath.Join(dir, "vendor", "autoload.php"), []byte("<?php\nrequire glob(__DIR__ . '/../gerbang-merchant-php-*')[0] . '/autoload.php';\n"))
	}
	command(t, dir, "sh", "-ec", install)
	programs := blocks(t, "php/README.md", "php", 2)
	write(t, filepath.Join(dir, "pay.php"), programs[0])
	write(t, filepath.Join(dir, "callback.php"), programs[1])
	put(t, dir, "run.php")
	php := interpreted(dir, "run.php", map[string][]string{"pay": {"pay.php"}}, "php", "-d", "display_errors=stderr", "-d", "error_reporting=-1")
	pay := php.program
	php.program = func(t *testing.T, name string) *exec.Cmd {
		t.Helper()
		if name == "pay" {
			return pay(t, name)
		}
		c := exec.CommandContext(t.Context(), "sh", "-c", `exec php -S "127.0.0.1:$PORT" callback.php`)
		c.Dir = dir
		return c
	}
	return php
}

func inPython(t *testing.T) client {
	t.Helper()
	if err := exec.CommandContext(t.Context(), "python3", "-c", "import ensurepip, tomllib").Run(); err != nil {
		t.Skip("python3 with venv is not on this machine; Debian has it in python3-venv")
	}
	dir := project(t, "python")
	command(t, dir, "sh", "-ec", string(blocks(t, "python/README.md", "sh", 1)[0]))
	programs := blocks(t, "python/README.md", "python", 2)
	write(t, filepath.Join(dir, "pay.py"), programs[0])
	write(t, filepath.Join(dir, "callback.py"), programs[1])
	put(t, dir, "run.py")
	t.Run("types", func(t *testing.T) {
		t.Parallel()
		tier.Long(t, "pyright judges the types, which change with the document alone")
		pyright := filepath.Join(absolute(t, harness.NodeTools(t)), "node_modules", ".bin", "pyright")
		write(t, filepath.Join(dir, "pyrightconfig.json"), []byte(`{"typeCheckingMode": "strict", "venvPath": ".", "venv": ".venv"}`))
		command(t, dir, pyright, "pay.py", "callback.py", absolute(t, filepath.Join(sources, "python", "src")))
	})
	return interpreted(dir, "run.py", map[string][]string{"pay": {"pay.py"}, "callback": {"callback.py"}}, filepath.Join(dir, ".venv", "bin", "python"), "-W", "error")
}
