package audit_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/audit"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

func line(sequence int64) store.AuditLine {
	return store.AuditLink{Sequence: sequence, Hash: []byte{7}, SealedAt: epoch.Add(5 * time.Microsecond), Proof: store.Written, ID: uuid.New(), Entry: &store.Audit{Operator: "ayu <a@b>", At: epoch}}.Line()
}

func TestAFileGetsLines(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	sink := audit.File(file)
	for i := range int64(2) {
		if err := sink.Send(t.Context(), []store.AuditLine{line(2*i + 1), line(2*i + 2)}); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	for i, text := range lines {
		var read store.AuditLine
		if err := json.Unmarshal([]byte(text), &read); err != nil || read.Sequence != int64(i+1) || read.Hash != "07" || !strings.Contains(text, "ayu <a@b>") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if info, err := os.Stat(file); len(lines) != 4 || err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%d lines, %v, %v", len(lines), info, err)
	}
	if err := audit.File(filepath.Join(file, "x")).Send(t.Context(), nil); err == nil {
		t.Error("where no file can be nothing fails")
	}
}

// rfc5424 is a message of RFC 5424 without structured data.
var rfc5424 = regexp.MustCompile(`^<109>1 (\S+) \S+ gerbang [0-9]+ audit - (\{.*\})$`)

func read5424(t *testing.T, message string) store.AuditLine {
	t.Helper()
	var read store.AuditLine
	parts := rfc5424.FindStringSubmatch(message)
	if parts == nil {
		t.Fatalf("no message: %q", message)
	}
	if at, err := time.Parse("2006-01-02T15:04:05.999999Z", parts[1]); err != nil || !at.Equal(epoch.Add(5*time.Microsecond)) {
		t.Errorf("its time is %s: %v", parts[1], err)
	}
	if err := json.Unmarshal([]byte(parts[2]), &read); err != nil {
		t.Error(err)
	}
	return read
}

func TestSyslogGetsLinesBehindTheirLength(t *testing.T) {
	t.Parallel()
	var listening net.ListenConfig
	server, err := listening.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	sink := audit.NewSyslog("tcp://" + server.Addr().String())
	within, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for round := range int64(2) {
		if err := sink.Send(within, []store.AuditLine{line(2*round + 1), line(2*round + 2)}); err != nil {
			t.Fatal(err)
		}
		conn, err := server.Accept()
		if err != nil {
			t.Fatal(err)
		}
		reader := bufio.NewReader(conn)
		for i := range int64(2) {
			var length int
			if _, err := fmt.Fscanf(reader, "%d ", &length); err != nil {
				t.Fatal(err)
			}
			message := make([]byte, length)
			if _, err := io.ReadFull(reader, message); err != nil {
				t.Fatal(err)
			}
			if l := read5424(t, string(message)); l.Sequence != 2*round+i+1 {
				t.Errorf("line %d", l.Sequence)
			}
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		// What is sent to a server that has gone is lost, and the sink says so.
		for err = nil; err == nil && within.Err() == nil; {
			err = sink.Send(within, nil)
		}
		if within.Err() != nil {
			t.Fatal("the sink does not notice that the server has gone")
		}
	}
	_ = server.Close()
	if err := sink.Send(within, []store.AuditLine{line(1)}); err == nil {
		t.Error("sent to nobody")
	}
}

func TestSyslogOfThisMachineGetsDatagrams(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	var listening net.ListenConfig
	server, err := listening.ListenPacket(t.Context(), "unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := audit.NewSyslog("unix://"+path).Send(t.Context(), []store.AuditLine{line(7)}); err != nil {
		t.Fatal(err)
	}
	message := make([]byte, 4096)
	n, _, err := server.ReadFrom(message)
	if err != nil {
		t.Fatal(err)
	}
	if l := read5424(t, string(message[:n])); l.Sequence != 7 || l.Entry.Operator != "ayu <a@b>" {
		t.Errorf("%+v", l)
	}
}

func TestSyslogAddresses(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		"tls://logs.example:6514": true, "tcp://127.0.0.1:601": true, "unix:///dev/log": true,
		"": false, "logs.example:6514": false, "udp://logs.example:514": false, "tls://logs.example": false, "unix://dev/log": false, "tcp://a:1/path": false,
	} {
		if _, err := audit.SyslogAddress(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}
