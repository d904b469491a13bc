// Package deploy_test loads what deploy has for machines with the programs that read it: systemd's unit, haproxy's configuration and the
// Dockerfile. What a program of a machine would refuse is refused here, before anybody copies it. The manifests of Kubernetes are judged in
// deploy/tools/manifests, and must not need a cluster.
package deploy_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// program is a program of this machine, or the test is skipped.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("there is no %s: %v", name, err)
	}
	return path
}

// TestUnit: systemd reads the unit, and finds it hardened.
func TestUnit(t *testing.T) {
	t.Parallel()
	analyze := program(t, "systemd-analyze")
	unit, err := os.ReadFile("systemd/gerbang.service")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := strings.ReplaceAll(string(unit), "/opt/gerbang/bin/gerbang", "/bin/true") // which is there, as systemd wants it
	if err := os.WriteFile(filepath.Join(dir, "gerbang.service"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--man=no", filepath.Join(dir, "gerbang.service")).CombinedOutput()
	if err != nil || strings.Contains(string(out), "gerbang.service:") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	out, err = exec.Command(analyze, "security", "--offline=true", "--threshold=20", filepath.Join(dir, "gerbang.service")).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}

// gateway is a replica, as far as haproxy sees it.
type gateway struct {
	*httptest.Server
	ready atomic.Bool
	name  string
}

func newGateway(t *testing.T, name string) *gateway {
	t.Helper()
	g := &gateway{name: name}
	g.ready.Store(true)
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" && !g.ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, g.name+" "+strings.Join(r.Header.Values("X-Forwarded-For"), " "))
	}))
	t.Cleanup(g.Close)
	return g
}

// certificate writes a key with its certificate for haproxy.
func certificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"api.example.com"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pair := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})...)
	if err := os.WriteFile(filepath.Join(dir, "api.pem"), pair, 0o600); err != nil {
		t.Fatal(err)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestHAProxy: the configuration runs before two gateways. What a client claims of its address is not passed on, operators' pages are for
// their networks alone, plain http is sent to https, and who is not ready gets no request.
func TestHAProxy(t *testing.T) {
	t.Parallel()
	haproxy := program(t, "haproxy")
	config, err := os.ReadFile("haproxy/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	dir, certificates := t.TempDir(), t.TempDir()
	certificate(t, certificates)
	if err := os.WriteFile(filepath.Join(dir, "operators.lst"), []byte("192.0.2.0/24\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, b := newGateway(t, "a"), newGateway(t, "b")
	secure, plain := freePort(t), freePort(t)
	text := strings.NewReplacer("/etc/haproxy/certificates", certificates, "/etc/haproxy/operators.lst", filepath.Join(dir, "operators.lst"),
		"bind :443 ", "bind "+secure+" ", "bind :80\n", "bind "+plain+"\n", "check port 8081", "check", "maxconn 8000", "maxconn 100").Replace(string(config))
	for name, g := range map[string]*gateway{"10.0.0.11": a, "10.0.0.12": b} {
		text = regexp.MustCompile(regexp.QuoteMeta(name)+`:\d+`).ReplaceAllString(text, g.Listener.Addr().String())
	}
	file := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(haproxy, "-c", "-f", file).CombinedOutput(); err != nil || strings.Contains(string(out), "[WARNING]") {
		t.Fatalf("haproxy -c: %v\n%s", err, out)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	running := exec.Command(haproxy, "-db", "-f", file)
	running.Stdout, running.Stderr = log, log
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = running.Process.Kill(); _ = running.Wait(); log.Close() })

	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}, // of a certificate that nobody signed
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	ask := func(url, machine string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = machine
		request.Header.Set("X-Forwarded-For", "203.0.113.9")
		response, err := client.Do(request)
		if err != nil {
			return 0, err.Error()
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(body)
	}
	until := func(what string, holds func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !holds(); <-time.After(50 * time.Millisecond) {
			if time.Now().After(end) {
				said, _ := os.ReadFile(log.Name())
				t.Fatalf("not within a minute: %s; haproxy said %s", what, said[max(0, len(said)-4000):])
			}
		}
	}
	until("an answer", func() bool {
		status, _ := ask("https://"+secure+"/", "api.example.com")
		return status == http.StatusOK
	})
	if _, body := ask("https://"+secure+"/", "api.example.com"); !strings.HasSuffix(body, " 127.0.0.1") {
		t.Errorf("a client's own word of its address is passed on: %q", body)
	}
	if status, body := ask("https://"+secure+"/", "operators.example.com"); status != http.StatusForbidden {
		t.Errorf("operators' pages from elsewhere: %d %q", status, body)
	}
	if status, _ := ask("https://"+secure+"/", "console.example.com"); status != http.StatusOK {
		t.Errorf("the merchants' console answers %d", status)
	}
	if status, _ := ask("http://"+plain+"/", "api.example.com"); status != http.StatusPermanentRedirect {
		t.Errorf("plain http answers %d", status)
	}
	a.ready.Store(false)
	until("only b is asked", func() bool {
		for range 6 {
			if _, body := ask("https://"+secure+"/", "api.example.com"); !strings.HasPrefix(body, "b ") {
				return false
			}
		}
		return true
	})
}

// TestHAProxyOfCompose: names that only an engine of containers knows are looked up later.
func TestHAProxyOfCompose(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command(program(t, "haproxy"), "-c", "-f", "container/haproxy.cfg").CombinedOutput(); err != nil || strings.Contains(string(out), "[WARNING]") {
		t.Errorf("haproxy -c: %v\n%s", err, out)
	}
}

// TestVersions: what is copied names the version that it came with.
func TestVersions(t *testing.T) {
	t.Parallel()
	number, err := os.ReadFile("../gateway/version/number")
	if err != nil {
		t.Fatal(err)
	}
	want, found := strings.TrimSpace(string(number)), 0
	named := regexp.MustCompile(`(?:gerbang[-:]|VERSION=|newTag: )(\d+\.\d+\.\d+)`)
	for _, file := range []string{"README.md", "container/Dockerfile", "container/compose.yaml", "kubernetes/base/kustomization.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range named.FindAllStringSubmatch(string(text), -1) {
			if found++; one[1] != want {
				t.Errorf("%s names %s, and this is %s", file, one[0], want)
			}
		}
	}
	if found < 6 {
		t.Errorf("only %d versions are named", found)
	}
}

// TestDockerfile: each file that it takes is one that a release has, and it runs as nobody who may write there.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("container/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			kept = append(kept, line)
		}
	}
	last := strings.Join(kept[len(kept)-6:], "\n")
	for _, want := range []string{"USER 65532:65532", `ENTRYPOINT ["/opt/gerbang/bin/gerbang"]`, "EXPOSE 8080 8081 8082"} {
		if !strings.Contains(last, want) {
			t.Errorf("the image has no %s:\n%s", want, last)
		}
	}
	for _, line := range kept {
		if image, is := strings.CutPrefix(line, "FROM "); is && (!strings.Contains(image, ":") || strings.Contains(image, ":latest")) {
			t.Errorf("%s names no version", line)
		}
	}
	docker := program(t, "docker")
	if out, err := exec.Command(docker, "info").CombinedOutput(); err != nil {
		t.Skipf("there is no engine: %v\n%s", err, out)
	}
	if out, err := exec.Command(docker, "build", "--check", "-f", "container/Dockerfile", "--build-arg", "VERSION=0.0.0", t.TempDir()).CombinedOutput(); err != nil {
		t.Errorf("docker build --check: %v\n%s", err, out)
	}
}
