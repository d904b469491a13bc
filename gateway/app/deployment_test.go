package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/template"

	"github.com/google/uuid"
	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

// deployment is what the replicas of one `gerbang serve` share: a directory
// with their configurations and secrets, an approved plugin, the simulated
// provider, and the balancer before them.
type deployment struct {
	dir      string
	approved approval
	token    string // of the operator whose commands a replica takes
	peer     string // of another operator
	door     string // URL of the simulator, in the form of gerbang dev's door
	front    *balancer
	replicas []*program
}

// approval is what `gerbang plugin digest` prints.
type approval struct {
	Name           string `json:"name"`
	Path           string `json:"path"`
	SHA256         string `json:"sha256"`
	ManifestDigest string `json:"manifest_digest"`
}

// newDeployment makes, by the operator's own commands, all that a replica needs
// beside a database to take payments.
func newDeployment(t *testing.T) *deployment {
	t.Helper()
	return newDeploymentOf(t, "payments")
}

// newDeploymentOf is newDeployment for a provider, whose simulator gets flags.
func newDeploymentOf(t testing.TB, provider string, flags ...string) *deployment {
	t.Helper()
	d := &deployment{dir: t.TempDir(), token: strings.Repeat(uuid.NewString(), 2), peer: strings.Repeat(uuid.NewString(), 2), front: newBalancer(t)}
	d.write(t, "operator.token", d.token+"\n")
	d.write(t, "peer.token", d.peer+"\n")
	nobody := &program{}
	if out, err := nobody.run(t, "keyset", "create", filepath.Join(d.dir, "keyset.json")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	plugin := filepath.Join(filepath.Dir(binary(t)), "plugins", provider)
	out, err := nobody.run(t, "--json", "plugin", "digest", plugin)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := json.Unmarshal([]byte(out), &d.approved); err != nil {
		t.Fatal(err)
	}
	d.door = startSimulator(t, plugin, flags...)
	return d
}

func (d *deployment) write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serveConfig is a whole configuration with few connections, since many tests
// share the database server.
var serveConfig = template.Must(template.New("").Parse(`
listen: 127.0.0.1:0
console: 127.0.0.1:0
public_url: {{.Public}}
database_url_file: {{.Name}}.url
database_connections: 8
keyset_file: keyset.json
operators: [{name: ops, token_file: operator.token}, {name: peer, token_file: peer.token}]
plugins:
  - name: {{.Plugin.Name}}
    path: {{.Plugin.Path}}
    sha256: "{{.Plugin.SHA256}}"
    manifest_digest: "{{.Plugin.ManifestDigest}}"
`))

// launch starts `gerbang serve` and waits for nothing.
func (d *deployment) launch(t testing.TB, databaseURL string, plugin approval) *program {
	t.Helper()
	name := "replica-" + uuid.NewString()
	var config bytes.Buffer
	if err := serveConfig.Execute(&config, map[string]any{"Name": name, "Public": d.front.url, "Plugin": plugin}); err != nil {
		t.Fatal(err)
	}
	d.write(t, name+".url", databaseURL+"\n")
	d.write(t, name+".yaml", config.String())
	p := &program{data: d.dir, document: document{SandboxURL: d.door, DatabaseURL: databaseURL, AdminToken: d.token}}
	p.begin(t, "serve", "--config", filepath.Join(d.dir, name+".yaml"))
	return p
}

// start starts a replica on each database URL, all at once, and waits until
// they are ready.
func (d *deployment) start(t testing.TB, databaseURLs ...string) []*program {
	t.Helper()
	started := make([]*program, len(databaseURLs))
	for i, databaseURL := range databaseURLs {
		started[i] = d.launch(t, databaseURL, d.approved)
	}
	for _, p := range started {
		p.awaitServing(t)
		d.front.add(t, p)
	}
	d.replicas = append(d.replicas, started...)
	return started
}

// awaitServing waits until a replica is ready.
func (p *program) awaitServing(t testing.TB) {
	t.Helper()
	await(t, readyWithin, "a replica that serves", func() bool {
		if !p.running() {
			t.Fatalf("gerbang serve ended with code %d:\n%s", p.code, p.log.tail(60))
		}
		return p.serves() && p.admin().Ready(t.Context()) == nil
	})
}

// serves reads where a replica listens from its log, since both ports are any.
func (p *program) serves() bool {
	for line := range strings.Lines(p.log.String()) {
		var entry struct{ Msg, Merchants, Console string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "gateway is serving" {
			p.APIURL, p.ConsoleURL = "http://"+entry.Merchants, "http://"+entry.Console
			return true
		}
	}
	return false
}

// newShop makes a merchant as an operator does, by the commands, and connects
// its live mode to the simulator.
func (d *deployment) newShop(t testing.TB, p *program, tier string) shop {
	t.Helper()
	var made merchant
	p.succeed(t, "", &made, "merchant", "create", "Toko Contoh", "--tier", tier)
	for _, replica := range d.replicas {
		replica.Merchants = append(replica.Merchants, made) // their logs are searched for the secrets
	}
	d.connect(t, p, made.MerchantID)
	return shop{p, made.MerchantID, made.LiveKey}
}

// connect gives somebody an account at the simulator, in live mode, and returns
// its name there.
func (d *deployment) connect(t testing.TB, p *program, whose string) string {
	t.Helper()
	return d.connectThrough(t, p, whose, func(credentials json.RawMessage) json.RawMessage { return credentials })
}

// connectThrough is connect with other credentials than the simulator gave.
func (d *deployment) connectThrough(t testing.TB, p *program, whose string, change func(json.RawMessage) json.RawMessage) string {
	t.Helper()
	var opened struct {
		Account       string          `json:"account"`
		CallbackToken string          `json:"callback_token"`
		Credentials   json.RawMessage `json:"credentials"`
	}
	if status := p.door(t, "/connect", fields{"merchant": whose, "mode": "live"}, &opened); status != http.StatusOK {
		t.Fatalf("connect: %d", status)
	}
	var connection adminapi.Connection
	p.succeed(t, string(change(opened.Credentials)), &connection,
		"connection", "set", whose, d.approved.Name, "--mode", "live", "--credentials-file", "-")
	hook := fields{
		"account": opened.Account, "name": "Toko Contoh", "callback_url": connection.NotifyURL, "callback_token": opened.CallbackToken,
	}
	var told json.RawMessage
	if status := p.door(t, "/hooks", hook, &told); status != http.StatusOK {
		t.Fatalf("hooks: %d %s", status, told)
	}
	return opened.Account
}

// succeed runs a command that must succeed and reads what it prints.
func (p *program) succeed(t testing.TB, input string, into any, arguments ...string) {
	t.Helper()
	out, err := p.runWith(t, input, append([]string{"--json"}, arguments...)...)
	if err == nil && into != nil {
		err = json.Unmarshal([]byte(out), into)
	}
	if err != nil {
		t.Fatalf("%v: %v\n%s", arguments, err, out)
	}
}

// at is the shop as a customer of another replica.
func (s shop) at(p *program) shop {
	s.program = p
	return s
}

// startSimulator runs the simulated provider and returns the URL of a door
// like gerbang dev's, which passes what it is asked on to the control API.
func startSimulator(t testing.TB, plugin string, flags ...string) string {
	t.Helper()
	dir, token, log := t.TempDir(), uuid.NewString(), &recording{}
	ready := filepath.Join(dir, "ready.json")
	arguments := []string{"sandbox", "--listen", "127.0.0.1:0", "--state", filepath.Join(dir, "state"), "--ready-file", ready}
	command := exec.Command(plugin, append(arguments, flags...)...)
	command.Env = []string{"GERBANG_SANDBOX_TOKEN=" + token, "GERBANG_HOST_PID=" + strconv.Itoa(os.Getpid())}
	command.Stderr = log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		if err := command.Wait(); err != nil {
			t.Errorf("the simulator: %v\n%s", err, log.tail(20))
		}
	})
	var told struct{ URL string }
	await(t, readyWithin, "the simulator", func() bool {
		content, err := os.ReadFile(ready)
		return err == nil && json.Unmarshal(content, &told) == nil
	})
	target, err := url.Parse(told.URL)
	if err != nil {
		t.Fatal(err)
	}
	control := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.URL.Path = "/_sandbox" + r.In.URL.Path
		r.Out.Header.Set("Authorization", "Bearer "+token)
	}}
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/faults" { // there is one provider, so it knows no names
			var order fields
			_ = json.NewDecoder(r.Body).Decode(&order)
			body, _ := json.Marshal(order.with(fields{"provider": nil}))
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		control.ServeHTTP(w, r)
	}))
	t.Cleanup(door.Close)
	return door.URL
}

// balancer stands before the replicas and gives each the next request in turn.
// One that takes no connections is left out from then on.
type balancer struct {
	url string

	mu       sync.Mutex
	targets  []string // hosts
	turn     int
	notified map[string]int // notifications that were accepted, by replica
}

func newBalancer(t testing.TB) *balancer {
	t.Helper()
	b := &balancer{notified: map[string]int{}}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.Host = "http", "" },
		Transport: b,
		ModifyResponse: func(r *http.Response) error {
			if strings.HasPrefix(r.Request.URL.Path, "/notify/") && r.StatusCode == http.StatusOK {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.notified["http://"+r.Request.URL.Host]++
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { // a replica that died of it
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	})
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

func (b *balancer) add(t testing.TB, p *program) {
	t.Helper()
	target, err := url.Parse(p.APIURL)
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.targets = append(b.targets, target.Host)
}

// RoundTrip passes a request on.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		target, err := b.next()
		if err != nil {
			return nil, err
		}
		passed := r.Clone(r.Context())
		passed.URL.Host = target
		if r.Body != nil {
			passed.Body = io.NopCloser(r.Body) // nothing is read of it before there is a connection
		}
		response, err := http.DefaultTransport.RoundTrip(passed)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return response, err
		}
		b.leaveOut(target)
	}
}

func (b *balancer) next() (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.targets) == 0 {
		return "", errors.New("there is no replica")
	}
	b.turn++
	return b.targets[b.turn%len(b.targets)], nil
}

func (b *balancer) leaveOut(target string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.targets = slices.DeleteFunc(b.targets, func(t string) bool { return t == target })
}

// movementOf is a payment as an operator sees it; no provider is asked for it.
func (p *program) movementOf(ctx context.Context, made payment) (adminapi.Movement, error) {
	_, id, found := strings.Cut(made.CheckoutURL, "/checkout/")
	if !found {
		return adminapi.Movement{}, fmt.Errorf("no checkout page: %q", made.CheckoutURL)
	}
	return p.admin().Movement(ctx, id)
}
