package sdktest

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"

	"github.com/seed-f006e74d/gerbang/sdk"
)

const envPlugin = "GERBANG_SDKTEST_PLUGIN"

// Main is for a TestMain: it runs serve, which ends in [sdk.Serve], where the
// suite started this test binary as a plugin, and the tests where it did not.
func Main(m *testing.M, serve func()) {
	if os.Getenv(envPlugin) == "" {
		os.Exit(m.Run())
	}
	serve()
	os.Exit(1) // serve came back
}

// self runs the test binary as a plugin.
func self(t *testing.T) *exec.Cmd {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path)
	command.Env = []string{envPlugin + "=1"}
	return command
}

// process is one life of the plugin.
type process struct {
	*sdk.Client
	plugin *plugin.Client
}

func startProcess(t *testing.T, command func() *exec.Cmd) *process {
	t.Helper()
	if command == nil {
		command = func() *exec.Cmd { return self(t) }
	}
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  sdk.Handshake,
		Plugins:          plugin.PluginSet{sdk.PluginName: &sdk.Plugin{}},
		Cmd:              command(),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         true,
		SkipHostEnv:      true,
		StartTimeout:     30 * time.Second, // a slow test machine is no fault of the plugin
		Logger:           hclog.New(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard}),
		Stderr:           t.Output(),
	})
	t.Cleanup(client.Kill)
	protocol, err := client.Client()
	if err != nil {
		t.Fatalf("the plugin does not start: %v", err)
	}
	dispensed, err := protocol.Dispense(sdk.PluginName)
	if err != nil {
		t.Fatalf("the plugin has no service: %v", err)
	}
	wire, ok := dispensed.(*sdk.Client)
	if !ok {
		t.Fatalf("the plugin dispenses a %T", dispensed)
	}
	return &process{Client: wire, plugin: client}
}

// kill ends the process as kill -9 does, and returns once the connection is
// known to be broken.
func (p *process) kill(ctx context.Context) error {
	pid, err := strconv.Atoi(p.plugin.ID())
	if err != nil {
		return err
	}
	running, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	if err := running.Kill(); err != nil {
		return err
	}
	return p.Broken(ctx)
}
