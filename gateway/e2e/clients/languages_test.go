package clients_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
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

// language is a client in one language.
type language struct {
	name string
	// prepare makes what runs tasks, and what runs the lines of the README.
	prepare func(t *testing.T) (run func(t *testing.T, tasks []task) []outcome, readme func(t *testing.T) *exec.Cmd)
}

// outcome is what came of a task.
type outcome map[string]any

var languages = []language{{"go", inGo}, {"typescript", inTypeScript}, {"php", inPHP}}

const sources = harness.Root + "/sdk/merchant"

// lines are the program in a README.
func lines(t *testing.T, readme, language string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(sources, readme))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s has no program in %s", readme, language)
	}
	return found[1]
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

// inMain is the program around the lines in Go.
const inMain = `package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/merchant"
)

func main() {
%s}
`

func inGo(t *testing.T) (run func(*testing.T, []task) []outcome, readme func(*testing.T) *exec.Cmd) {
	t.Helper()
	return func(t *testing.T, tasks []task) []outcome {
			t.Helper()
			outcomes := make([]outcome, len(tasks))
			for i, one := range tasks {
				outcomes[i] = doInGo(t, one)
			}
			return outcomes
		}, func(t *testing.T) *exec.Cmd {
			t.Helper()
			program := filepath.Join(t.TempDir(), "main.go")
			write(t, program, fmt.Appendf(nil, inMain, lines(t, "README.md", "go")))
			command := exec.CommandContext(t.Context(), "go", "run", program)
			command.Dir = absolute(t, harness.Root)
			return command
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

func inTypeScript(t *testing.T) (run func(*testing.T, []task) []outcome, readme func(*testing.T) *exec.Cmd) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not on this machine; Debian has it in nodejs")
	}
	tools, dir := absolute(t, harness.NodeTools(t)), t.TempDir()
	installed := filepath.Join(dir, "node_modules", "@gerbang", "merchant")
	if err := os.CopyFS(installed, os.DirFS(filepath.Join(sources, "typescript"))); err != nil {
		t.Fatal(err)
	}
	types := filepath.Join(tools, "node_modules", "@types")
	compile := func(arguments ...string) {
		command := exec.CommandContext(t.Context(), filepath.Join(tools, "node_modules", ".bin", "tsc"), append(arguments, "--typeRoots", types)...)
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("tsc: %v\n%s", err, out)
		}
	}
	compile("--project", installed)
	write(t, filepath.Join(dir, "package.json"), []byte(`{"type": "module"}`))
	write(t, filepath.Join(dir, "pay.ts"), lines(t, "typescript/README.md", "ts"))
	compile("pay.ts", "--module", "nodenext", "--target", "es2022", "--strict", "--types", "node", "--lib", "es2023,dom")
	runner, err := os.ReadFile("testdata/run.mjs")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "run.mjs"), runner)
	node := func(t *testing.T, program string) *exec.Cmd {
		command := exec.CommandContext(t.Context(), "node", program)
		command.Dir = dir
		return command
	}
	return func(t *testing.T, tasks []task) []outcome { t.Helper(); return external(t, node(t, "run.mjs"), tasks) },
		func(t *testing.T) *exec.Cmd { t.Helper(); return node(t, "pay.js") }
}

func inPHP(t *testing.T) (run func(*testing.T, []task) []outcome, readme func(*testing.T) *exec.Cmd) {
	t.Helper()
	if _, err := exec.LookPath("php"); err != nil {
		t.Skip("php is not on this machine; Debian has it in php-cli")
	}
	dir, src := t.TempDir(), absolute(t, filepath.Join(sources, "php", "src"))
	// As Composer's class map would.
	write(t, filepath.Join(dir, "vendor", "autoload.php"), []byte("<?php\nforeach (['Generated', 'Client', 'Callback'] as $name) {\n    require_once '"+src+"/' . $name . '.php';\n}\n"))
	write(t, filepath.Join(dir, "pay.php"), lines(t, "php/README.md", "php"))
	runner, err := os.ReadFile("testdata/run.php")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "run.php"), runner)
	php := func(t *testing.T, program string) *exec.Cmd {
		command := exec.CommandContext(t.Context(), "php", "-d", "display_errors=stderr", "-d", "error_reporting=-1", program)
		command.Dir = dir
		return command
	}
	return func(t *testing.T, tasks []task) []outcome { t.Helper(); return external(t, php(t, "run.php"), tasks) },
		func(t *testing.T) *exec.Cmd { t.Helper(); return php(t, "pay.php") }
}
