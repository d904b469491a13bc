package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// BenchmarkRead measures the reads of one row that merchants ask for, one after the
// other and from 64 goroutines. The metrics are the processor time of a read, of this
// process and of PostgreSQL where that runs on this machine.
func BenchmarkRead(b *testing.B) {
	url := database(b)
	s := open(b, url, store.Options{})
	m, reserved, err := s.Reserve(b.Context(), draft("A"))
	if err != nil || !reserved {
		b.Fatal(reserved, err)
	}
	if ok, err := apply(b.Context(), s, epoch, pending(m)); err != nil || !ok {
		b.Fatal(ok, err)
	}
	for _, read := range []struct {
		name string
		do   func(ctx context.Context) error
	}{
		{"movement", func(ctx context.Context) error { _, err := s.MovementByKey(ctx, m.Key); return err }},
		{"balance", func(ctx context.Context) error { _, err := s.Balance(ctx, m.Owner); return err }},
	} {
		for _, goroutines := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", read.name, goroutines), func(b *testing.B) {
				b.ReportAllocs()
				client, server := ownTime(b), serverTime(b, url)
				repeat(b, read.do, goroutines)
				b.ReportMetric(float64((ownTime(b)-client).Microseconds())/float64(b.N), "client_us")
				b.ReportMetric(float64((serverTime(b, url)-server).Microseconds())/float64(b.N), "server_us")
			})
		}
	}
}

func ownTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// serverTime is the processor time that the server's processes have used, 0 where they
// can't be seen. It counts in steps of 10 ms.
func serverTime(b *testing.B, url string) time.Duration {
	b.Helper()
	connection, err := pgx.Connect(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = connection.Close(b.Context()) }()
	parent := stat(fmt.Sprint(connection.PgConn().PID()))[1]
	all, _ := filepath.Glob("/proc/[0-9]*")
	var ticks int
	for _, process := range all {
		if fields := stat(filepath.Base(process)); parent != "" && (fields[1] == parent || filepath.Base(process) == parent) {
			user, _ := strconv.Atoi(fields[11])
			system, _ := strconv.Atoi(fields[12])
			ticks += user + system
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// stat is what Linux tells of a process, after its name.
func stat(process string) []string {
	text, _ := os.ReadFile(filepath.Join("/proc", process, "stat"))
	if _, rest, told := strings.Cut(string(text), ") "); told {
		return strings.Fields(rest)
	}
	return make([]string, 20)
}
