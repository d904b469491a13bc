package harness

import (
	"context"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Standby is a second server that follows a first one and acknowledges each of its commits.
type Standby struct{ URL string }

// NewStandby copies a server that runs, and follows it.
func (m *PostgreSQL) NewStandby(t *testing.T) *Standby {
	t.Helper()
	dir := filepath.Join(DataDir(t), "standby")
	postgres(t, "pg_basebackup", "--dbname="+m.server.URL(), "--pgdata="+dir, "--write-recovery-conf", "--checkpoint=fast")
	_, port, err := net.SplitHostPort(FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	arguments := []string{"-D", dir, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="}
	for _, name := range []string{"max_connections", "max_locks_per_transaction", "max_pred_locks_per_transaction"} { // no fewer than the first has
		arguments = append(arguments, "-c", name+"="+m.setting(t, name))
	}
	server := exec.Command(postgresProgram(t, "postgres"), arguments...)
	if os.Geteuid() == 0 { // which PostgreSQL refuses to run as
		owner, err := user.Lookup("postgres")
		if err != nil {
			t.Skipf("PostgreSQL has no user here: %v", err)
		}
		for above := filepath.Dir(dir); above != filepath.Clean(os.TempDir()) && above != "/"; above = filepath.Dir(above) {
			if err := os.Chmod(above, 0o711); err != nil { // the test's own, through which that user passes
				t.Fatal(err)
			}
		}
		if out, err := exec.CommandContext(t.Context(), "chown", "-R", owner.Username, dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		uid, err := strconv.ParseUint(owner.Uid, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		gid, err := strconv.ParseUint(owner.Gid, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		server.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	log := &recording{}
	server.Stdout, server.Stderr = log, log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait()
		if t.Failed() {
			t.Logf("the end of the standby's log:\n%s", log.Tail(20))
		}
	})
	u, err := url.Parse(m.server.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.Host = "127.0.0.1:" + port
	s := &Standby{u.String()}
	m.run(t, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
	Await(t, ReadyWithin, "a standby that follows", func() bool {
		conn, err := pgx.Connect(t.Context(), m.URL)
		if err != nil {
			return false
		}
		defer conn.Close(context.WithoutCancel(t.Context()))
		var follows bool
		err = conn.QueryRow(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync')").Scan(&follows)
		return err == nil && follows
	})
	return s
}

// setting is what the server says of a parameter.
func (m *PostgreSQL) setting(t *testing.T, name string) (value string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), m.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := conn.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// Promote has the standby take the first one's place.
func (s *Standby) Promote(t *testing.T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, statement := range []string{"SELECT pg_promote()", "ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()"} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}
