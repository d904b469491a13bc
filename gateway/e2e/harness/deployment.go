package harness

import (
	"bytes"
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
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Deployment is what the replicas of one `gerbang serve` share: a directory
// with their configurations and secrets, an approved plugin, the simulated
// provider, and the balancer before them.
type Deployment struct {
	Dir        string
	Approved   Approval
	token      string // of the operator whose commands a replica takes
	Peer       string // of another operator
	Binary     string // of replicas that are launched from now on, "" for the one that is tested
	SandboxURL string // URL of the simulator, in the form of gerbang dev's sandbox
	front      *balancer
	replicas   []*Program
}

// Approval is what `gerbang plugin digest` prints.
type Approval struct {
	Name           string `json:"name"`
	Path           string `json:"path"`
	SHA256         string `json:"sha256"`
	ManifestDigest string `json:"manifest_digest"`

	Ports []string // that the plugin may connect to
	Read  []string // what it may read
}

// NewDeployment makes all that a replica needs beside a database to take payments.
func NewDeployment(t *testing.T) *Deployment {
	t.Helper()
	return NewDeploymentOf(t, "payments")
}

// NewDeploymentOf is NewDeployment for a provider, whose simulator gets flags.
func NewDeploymentOf(t testing.TB, provider string, flags ...string) *Deployment {
	t.Helper()
	takeSlot(t)
	d := &Deployment{Dir: t.TempDir(), token: strings.Repeat(uuid.NewString(), 2), Peer: strings.Repeat(uuid.NewString(), 2), front: newBalancer(t)}
	d.write(t, "operator.token", d.token+"\n")
	d.write(t, "peer.token", d.Peer+"\n")
	if err := tenants.CreateKeysetFile(filepath.Join(d.Dir, "keyset.json")); err != nil {
		t.Fatal(err)
	}
	d.simulate(t, provider, flags...)
	return d
}

// Another is the same deployment as seen from another provider, whose simulator it
// starts: Approved is that one's plugin, and Connect gives accounts there.
func (d *Deployment) Another(t testing.TB, provider string, flags ...string) *Deployment {
	t.Helper()
	other := *d
	other.simulate(t, provider, flags...)
	return &other
}

func (d *Deployment) simulate(t testing.TB, provider string, flags ...string) {
	t.Helper()
	d.Approved = Approve(t, provider)
	simulator := startSimulator(t, d.Approved.Path, flags...)
	d.SandboxURL, d.Approved.Ports, d.Approved.Read = simulator.door, []string{simulator.port}, []string{simulator.dir}
}

// Simulator is nothing but the simulator, for payers and for what it knows.
func (d *Deployment) Simulator() *Program {
	return &Program{Document: Document{SandboxURL: d.SandboxURL}}
}

// approved are the providers' plugins that this process has approved: each is started for that.
var approved sync.Map

// Approve approves a provider's plugin.
func Approve(t testing.TB, provider string) Approval {
	t.Helper()
	if a, known := approved.Load(provider); known {
		return a.(Approval)
	}
	path := filepath.Join(filepath.Dir(Binary(t)), "plugins", provider)
	if _, err := os.Stat(path); err != nil {
		path = filepath.Join(filepath.Dir(Binary(t)), "more", provider)
	}
	a := ApproveAt(t, path)
	approved.Store(provider, a)
	return a
}

// ApproveAt approves a plugin of the test's own.
func ApproveAt(t testing.TB, path string) (a Approval) {
	t.Helper()
	var out, log bytes.Buffer
	if err := Until(ReadyWithin, func() bool {
		out.Reset()
		log.Reset()
		command := (&Program{}).command(t, "", "--json", "plugin", "digest", path)
		command.Stdout, command.Stderr = &out, &log
		err := command.Run()
		return err == nil && json.Unmarshal(out.Bytes(), &a) == nil || !strings.Contains(log.String(), startTimeout)
	}); err != nil || a.SHA256 == "" {
		t.Fatalf("gerbang plugin digest: %s%s", out.String(), log.String())
	}
	return a
}

// Beside is a line for the end of a configuration that adds another plugin.
func (a Approval) Beside() string {
	return fmt.Sprintf("  - {name: %s, path: %s, sha256: %q, manifest_digest: %q, ports: [%s], read: [%s]}",
		a.Name, a.Path, a.SHA256, a.ManifestDigest, strings.Join(a.Ports, ", "), strings.Join(a.Read, ", "))
}

func (d *Deployment) write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(d.Dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serveConfig is a whole configuration with few connections, since many tests
// share the database server.
var serveConfig = template.Must(template.New("").Parse(`
listen: {{.At.Listen}}
console: {{.At.Console}}
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
    ports: [{{range $i, $port := .Plugin.Ports}}{{if $i}}, {{end}}{{$port}}{{end}}]
    read: [{{range $i, $path := .Plugin.Read}}{{if $i}}, {{end}}{{$path}}{{end}}]
`))

// Addresses are where a replica listens, host:port.
type Addresses struct{ Listen, Console string }

// anywhere is for replicas that nobody has to find again.
var anywhere = Addresses{"127.0.0.1:0", "127.0.0.1:0"}

// LaunchAt is Launch for a replica that others find at its addresses.
func (d *Deployment) LaunchAt(t testing.TB, databaseURL string, at Addresses, more ...string) *Program {
	t.Helper()
	return d.launch(t, databaseURL, d.Approved, at, nil, more...)
}

// Launch starts `gerbang serve` with a plugin and waits for nothing. More are lines
// for the end of its configuration.
func (d *Deployment) Launch(t testing.TB, databaseURL string, plugin Approval, more ...string) *Program {
	t.Helper()
	return d.launch(t, databaseURL, plugin, anywhere, nil, more...)
}

// LaunchWith is Launch with flags for `gerbang serve`.
func (d *Deployment) LaunchWith(t testing.TB, databaseURL string, flags []string, more ...string) *Program {
	t.Helper()
	return d.launch(t, databaseURL, d.Approved, anywhere, flags, more...)
}

func (d *Deployment) launch(t testing.TB, databaseURL string, plugin Approval, at Addresses, flags []string, more ...string) *Program {
	t.Helper()
	name := "replica-" + uuid.NewString()
	var config bytes.Buffer
	if err := serveConfig.Execute(&config, map[string]any{"Name": name, "At": at, "Public": d.front.url, "Plugin": plugin}); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(more, func(line string) bool { return strings.HasPrefix(line, "stop_wait:") }) {
		more = append(slices.Clone(more), "stop_wait: 0s") // no balancer has to be waited for
	}
	d.write(t, name+".url", databaseURL+"\n")
	d.write(t, name+".yaml", config.String()+strings.Join(more, "\n"))
	p := &Program{Data: d.Dir, binary: d.Binary, Document: Document{SandboxURL: d.SandboxURL, DatabaseURL: databaseURL, AdminToken: d.token}}
	p.begin(t, append([]string{"serve", "--config", filepath.Join(d.Dir, name+".yaml")}, flags...)...)
	return p
}

// Start starts a replica on each database URL, all at once, and waits until
// they are ready.
func (d *Deployment) Start(t testing.TB, databaseURLs ...string) []*Program {
	t.Helper()
	started := make([]*Program, len(databaseURLs))
	for i, databaseURL := range databaseURLs {
		started[i] = d.Launch(t, databaseURL, d.Approved)
	}
	d.Join(t, started...)
	return started
}

// Join waits until replicas are ready and puts them behind the balancer.
func (d *Deployment) Join(t testing.TB, started ...*Program) {
	t.Helper()
	for _, p := range started {
		p.AwaitServing(t)
		d.front.add(t, p)
	}
	d.replicas = append(d.replicas, started...)
}

// Notified is how many notifications a replica has accepted.
func (d *Deployment) Notified(p *Program) int {
	d.front.mu.Lock()
	defer d.front.mu.Unlock()
	return d.front.notified[p.APIURL]
}

// AwaitServing waits until a replica is ready.
func (p *Program) AwaitServing(t testing.TB) {
	t.Helper()
	Await(t, ReadyWithin, "a replica that serves", func() bool {
		if !p.Running() {
			t.Fatalf("gerbang serve ended with code %d:\n%s", p.Code, p.Log.Tail(60))
		}
		return p.Serves() && p.Admin().Ready(t.Context()) == nil
	})
}

// Serves reads where a replica listens from its log, since both ports are any.
func (p *Program) Serves() bool {
	for line := range strings.Lines(p.Log.String()) {
		var entry struct{ Msg, Merchants, Console string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "gateway is serving" {
			p.APIURL, p.ConsoleURL = "http://"+entry.Merchants, "http://"+entry.Console
			return true
		}
	}
	return false
}

// NewShop makes a merchant as an operator does, and connects its live mode to the
// simulator.
func (d *Deployment) NewShop(t testing.TB, p *Program, tier string) Shop {
	t.Helper()
	created, err := adminapi.CreateMerchant.Call(t.Context(), p.Admin(), adminapi.NewMerchant{Name: "Toko Contoh", Tier: tier})
	if err != nil {
		t.Fatal(err)
	}
	made := Merchant{created.MerchantID, tier, created.LiveKey, created.TestKey, created.CallbackSecret, created.TestCallbackSecret}
	for _, replica := range d.replicas {
		replica.Merchants = append(replica.Merchants, made) // their logs are searched for the secrets
	}
	d.Connect(t, p, made.MerchantID)
	return Shop{p, made.MerchantID, made.LiveKey}
}

// Connect gives somebody an account at the simulator, in live mode, and returns
// its name there.
func (d *Deployment) Connect(t testing.TB, p *Program, whose string) string {
	t.Helper()
	return d.ConnectThrough(t, p, whose, func(credentials json.RawMessage) json.RawMessage { return credentials })
}

// ConnectThrough is Connect with other credentials than the simulator gave.
func (d *Deployment) ConnectThrough(t testing.TB, p *Program, whose string, change func(json.RawMessage) json.RawMessage) string {
	t.Helper()
	return d.connect(t, p, whose, "live", change, false)
}

// ConnectTest is Connect in test mode.
func (d *Deployment) ConnectTest(t testing.TB, p *Program, whose string) string {
	t.Helper()
	return d.connect(t, p, whose, "test", func(credentials json.RawMessage) json.RawMessage { return credentials }, false)
}

// ConnectUnverified is ConnectThrough for credentials that lead nowhere.
func (d *Deployment) ConnectUnverified(t testing.TB, p *Program, whose string, change func(json.RawMessage) json.RawMessage) {
	t.Helper()
	d.connect(t, p, whose, "live", change, true)
}

func (d *Deployment) connect(t testing.TB, p *Program, whose, mode string, change func(json.RawMessage) json.RawMessage, unverified bool) string {
	t.Helper()
	var opened struct {
		Account       string          `json:"account"`
		CallbackToken string          `json:"callback_token"`
		Credentials   json.RawMessage `json:"credentials"`
	}
	simulator := d.Simulator()
	if status := simulator.Sandbox(t, "/connect", Fields{"merchant": whose, "mode": mode}, &opened); status != http.StatusOK {
		t.Fatalf("connect: %d", status)
	}
	connection, err := adminapi.SetConnection.Call(t.Context(), p.Admin(), adminapi.ConnectionSpec{
		Merchant: whose, Provider: d.Approved.Name, Mode: mode, Unverified: unverified, Credentials: change(opened.Credentials),
	})
	if err != nil {
		t.Fatal(err)
	}
	hook := Fields{
		"account": opened.Account, "name": "Toko Contoh", "callback_url": connection.NotifyURL, "callback_token": opened.CallbackToken,
	}
	var told json.RawMessage
	if status := simulator.Sandbox(t, "/hooks", hook, &told); status != http.StatusOK {
		t.Fatalf("hooks: %d %s", status, told)
	}
	return opened.Account
}

// At is the shop as a customer of another replica.
func (s Shop) At(p *Program) Shop {
	s.Program = p
	return s
}

// simulator is a running one: its own port, the directory of its state, and a URL
// like gerbang dev's sandbox, which passes requests on to its control API.
type simulator struct{ port, dir, door string }

// startSimulator runs the simulated provider.
func startSimulator(t testing.TB, plugin string, flags ...string) simulator {
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
		if err := errors.Join(command.Process.Signal(syscall.SIGTERM), command.Wait()); err != nil {
			t.Errorf("the simulator: %v\n%s", err, log.Tail(20))
		}
	})
	var told struct{ URL string }
	Await(t, ReadyWithin, "the simulator", func() bool {
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
			var order Fields
			if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			body, err := json.Marshal(order.With(Fields{"provider": nil}))
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		control.ServeHTTP(w, r)
	}))
	t.Cleanup(door.Close)
	return simulator{port: target.Port(), dir: dir, door: door.URL}
}

// LaunchAs starts `gerbang serve` with a configuration that a test has made, and the token of an operator in it.
func LaunchAs(t testing.TB, config, token string, flags ...string) *Program {
	t.Helper()
	return (&Program{Document: Document{AdminToken: token}}).Serve(t, config, flags...)
}

// Another is nobody's process: the commands of another binary.
func Another(binary string) *Program { return &Program{binary: binary} }

// Serve starts `gerbang serve` as another process of the same binary and operator.
func (p *Program) Serve(t testing.TB, config string, flags ...string) *Program {
	t.Helper()
	takeSlot(t)
	started := &Program{Data: filepath.Dir(config), binary: p.binary, Document: Document{AdminToken: p.AdminToken}}
	started.begin(t, append([]string{"serve", "--config", config}, flags...)...)
	return started
}

// InFront is a merchant who asks whichever replica is next.
func (d *Deployment) InFront(s Shop) Shop {
	return Shop{&Program{Document: Document{APIURL: d.front.url, SandboxURL: d.SandboxURL}}, s.MerchantID, s.Key}
}
