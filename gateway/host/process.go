package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/seed-f006e74d/gerbang/gateway/confine"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// maxMessage bounds a message in either direction, in bytes; go-plugin's
// default is no bound.
const maxMessage = 8 << 20

// process is one process of a plugin. Once it is broken it stays so.
type process struct {
	client   *plugin.Client
	program  *program
	scratch  string // the directory that go-plugin made for it, "" before
	conn     *grpc.ClientConn
	wire     heard
	manifest *manifest.Manifest
	since    time.Time     // when it was ready to be called
	lost     chan struct{} // closed by the first who finds the connection gone
	losing   sync.Once
	started  func() bool // takes the start's deadline off; false when it was too late

	uses    atomic.Int64 // that are under way
	retired atomic.Bool  // nobody begins to use it any more
	unused  sync.Once
	idle    chan struct{} // closed once it is retired and no use is under way
}

// enter counts a use. It is for whoever knows that the process is not retired.
func (p *process) enter() { p.uses.Add(1) }

// leave ends a use.
func (p *process) leave() {
	if p.uses.Add(-1) == 0 && p.retired.Load() {
		p.unused.Do(func() { close(p.idle) })
	}
}

// retire says that no use begins any more.
func (p *process) retire() {
	p.retired.Store(true)
	if p.uses.Load() == 0 {
		p.unused.Do(func() { close(p.idle) })
	}
}

// launch verifies the binary, starts it, and asks for its manifest.
func launch(ctx context.Context, spec Spec, log *slog.Logger, known *secrets, limit time.Duration) (*process, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out := &output{log: log, secrets: known}
	p := &process{lost: make(chan struct{}), idle: make(chan struct{}), wire: heard{secrets: known}}
	p.client = plugin.NewClient(p.clientConfig(ctx, spec, out, limit))
	err := p.connect(ctx)
	if err == nil && !p.started() {
		err = ctx.Err()
	}
	if err != nil {
		p.end(0)
		if p.refused() {
			return nil, errors.New(out.last())
		}
		if ctx.Err() != nil {
			err = fmt.Errorf("it did not start within %v: %w", limit, ctx.Err())
		}
		if last := out.last(); last != "" {
			err = fmt.Errorf("%w (its last lines: %s)", err, last)
		}
		return nil, err
	}
	return p, nil
}

// refused reports whether the launcher started nothing.
func (p *process) refused() bool {
	return p.program != nil && p.program.cmd.ProcessState != nil && p.program.cmd.ProcessState.ExitCode() == confine.Refused
}

// SHA256File gives the checksum of a binary as [Spec] wants it.
func SHA256File(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func (p *process) clientConfig(ctx context.Context, spec Spec, out *output, limit time.Duration) *plugin.ClientConfig {
	return &plugin.ClientConfig{
		HandshakeConfig:  sdk.Handshake,
		Plugins:          plugin.PluginSet{sdk.PluginName: &sdk.Plugin{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         true,
		SkipHostEnv:      true,
		StartTimeout:     limit,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: scratchBase()},
		// Off makes go-plugin pass the plugin's lines on unread.
		Logger:     hclog.New(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard}),
		Stderr:     out.stream(),
		SyncStdout: out.stream(),
		SyncStderr: out.stream(),
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
			grpc.WithIdleTimeout(0), // an idle connection would look like a broken one
		},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, scratch string) (runner.Runner, error) {
			p.scratch = scratch
			program, err := newProgram(spec, withHost(cmd.Env), scratch)
			if err != nil {
				return nil, err
			}
			p.program = program
			p.started = context.AfterFunc(ctx, func() { _ = program.Kill(context.Background()) })
			return program, nil
		},
	}
}

// withHost names this process to one that is to end with it.
func withHost(env []string) []string {
	return append(env, sdk.EnvHostPID+"="+strconv.Itoa(os.Getpid()))
}

func (p *process) connect(ctx context.Context) error {
	protocol, err := p.client.Client()
	if err != nil {
		return err
	}
	wire, ok := protocol.(*plugin.GRPCClient)
	if !ok {
		return errors.New("it does not speak gRPC")
	}
	p.conn = wire.Conn
	dispensed, err := wire.Dispense(sdk.PluginName)
	if err != nil {
		return err
	}
	if p.wire.Client, ok = dispensed.(*sdk.Client); !ok {
		return fmt.Errorf("it dispenses a %T", dispensed)
	}
	p.manifest, err = p.wire.Describe(ctx)
	return err
}

// usable reports whether a call may be handed to the connection. A connection
// that was lost once makes the process unusable for good.
func (p *process) usable() bool {
	select {
	case <-p.lost:
		return false
	default:
	}
	if p.conn.GetState() != connectivity.Ready {
		p.lose()
		return false
	}
	return true
}

// suspect gives a connection that just failed a call a moment to show whether
// it is gone, since a call learns of it first. The caller's next call then finds
// the new process instead of failing on the old one. A handler may fail a call
// with the same code, so the error alone proves nothing: it is [errEnded] only where the
// connection is gone.
func (p *process) suspect(err error) error {
	switch status.Code(err) {
	case codes.Unavailable:
		select {
		case <-p.lost:
		case <-p.program.done:
			p.lose()
		case <-time.After(suspense):
		}
	case codes.Canceled: // by the caller, or by us: whoever lost the connection first has closed it
	default:
		return err
	}
	if p.usable() {
		return err
	}
	return fmt.Errorf("%w: %w", errEnded, err)
}

var errEnded = errors.New("the plugin ended")

const suspense = 50 * time.Millisecond

func (p *process) lose() { p.losing.Do(func() { close(p.lost) }) }

// watch waits until the process is of no more use, and says why. It returns
// an empty string when the context ended.
func (p *process) watch(ctx context.Context, tune tuning) string {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		if p.wire.Broken(ctx) == nil {
			p.lose()
		}
	}()
	tick := time.NewTicker(tune.healthPeriod)
	defer tick.Stop()
	for misses := 0; ; {
		select {
		case <-ctx.Done():
			return ""
		case <-p.lost:
			return "its connection was lost"
		case <-p.program.done:
			return "it exited"
		case <-tick.C:
			if p.healthy(ctx, tune.healthWait) {
				misses = 0
			} else if misses++; misses >= tune.healthMisses {
				return "it did not answer its health check"
			}
		}
	}
}

func (p *process) healthy(ctx context.Context, wait time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	answer, err := grpc_health_v1.NewHealthClient(p.conn).
		Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: plugin.GRPCServiceName})
	return err == nil && answer.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING
}

// end gives the process some time to end by itself, kills it after that, and
// cleans up. go-plugin's Kill alone has no deadline: it asks the process first,
// and one that hangs never answers.
func (p *process) end(graceful time.Duration) {
	if p.program != nil {
		kill := time.AfterFunc(graceful, func() { _ = p.program.Kill(context.Background()) })
		defer kill.Stop()
	}
	p.client.Kill()
	_ = os.RemoveAll(p.scratch) // go-plugin leaves it where no process began
}
