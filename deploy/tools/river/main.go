// River works a backlog of signed deliveries off, for comparison with ours: the same
// number of jobs, receivers and bytes, the same database, and the same signatures. It
// prints how many a second were delivered and written as done.
package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// delivery is a job.
type delivery struct {
	URL  string          `json:"url"`
	ID   string          `json:"id"`
	Body json.RawMessage `json:"body"`
}

// Kind implements river.JobArgs.
func (delivery) Kind() string { return "delivery" }

// deliverer makes deliveries.
type deliverer struct {
	river.WorkerDefaults[delivery]

	client *http.Client
	key    []byte
}

// Work makes one delivery.
func (d *deliverer) Work(ctx context.Context, job *river.Job[delivery]) error {
	at := strconv.FormatInt(time.Now().Unix(), 10)
	sign := hmac.New(sha256.New, d.key)
	fmt.Fprintf(sign, "%s.%s.%s", job.Args.ID, at, job.Args.Body)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, job.Args.URL, bytes.NewReader(job.Args.Body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Webhook-Id", job.Args.ID)
	request.Header.Set("Webhook-Timestamp", at)
	request.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(sign.Sum(nil)))
	response, err := d.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("answered %d", response.StatusCode)
	}
	return nil
}

const receivers = 200

func main() {
	var s setup
	flag.StringVar(&s.database, "database", "", "`URL` of an empty PostgreSQL database")
	flag.IntVar(&s.jobs, "jobs", 10_000, "how many deliveries")
	flag.IntVar(&s.workers, "workers", 256, "how many at once")
	flag.Parse()
	rate, err := s.measure(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%.0f deliveries/s\n", rate)
}

type setup struct {
	database      string
	jobs, workers int
}

func (s setup) measure(ctx context.Context) (perSecond float64, err error) {
	var arrived atomic.Int64
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		return 0, err
	}
	go func() {
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // its only client is this process
			_, _ = io.Copy(io.Discard, r.Body)
			arrived.Add(1)
			w.WriteHeader(http.StatusNoContent)
		}))
	}()
	pool, err := pgxpool.New(ctx, s.database)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return 0, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return 0, err
	}
	workers := river.NewWorkers()
	transport := &http.Transport{MaxIdleConns: 0, MaxIdleConnsPerHost: s.workers, DisableCompression: true}
	river.AddWorker(workers, &deliverer{client: &http.Client{Transport: transport, Timeout: 10 * time.Second}, key: []byte("0123456789abcdef0123456789abcdef")})
	client, err := river.NewClient(driver, &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: s.workers}}, Workers: workers, Logger: slog.New(slog.DiscardHandler),
		FetchCooldown: time.Millisecond, FetchPollInterval: 10 * time.Millisecond,
	})
	if err != nil {
		return 0, err
	}
	if err := s.fill(ctx, client, listener.Addr().(*net.TCPAddr).Port); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := client.Start(ctx); err != nil {
		return 0, err
	}
	for done := 0; done < s.jobs; {
		if err := pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE state = 'completed'").Scan(&done); err != nil {
			return 0, err
		}
		if time.Since(began) > 2*time.Minute {
			return 0, fmt.Errorf("%d of %d are done after %v", done, s.jobs, time.Since(began))
		}
		time.Sleep(20 * time.Millisecond)
	}
	took := time.Since(began)
	if arrived.Load() != int64(s.jobs) {
		return 0, fmt.Errorf("%d of %d arrived", arrived.Load(), s.jobs)
	}
	return float64(s.jobs) / took.Seconds(), client.Stop(ctx)
}

// fill makes the backlog.
func (s setup) fill(ctx context.Context, client *river.Client[pgx.Tx], port int) error {
	const atOnce = 1000
	for first := 0; first < s.jobs; first += atOnce {
		var jobs []river.InsertManyParams
		for n := first; n < min(first+atOnce, s.jobs); n++ {
			jobs = append(jobs, river.InsertManyParams{Args: delivery{
				URL: fmt.Sprintf("http://127.0.1.%d:%d/good", n%receivers+1, port), ID: fmt.Sprintf("msg_%d", n),
				Body: json.RawMessage(`{"event":"payments.status_update","data":{"external_id":"INV/2026/#000001","status":"PAID","amount":25000}}`),
			}})
		}
		if _, err := client.InsertManyFast(ctx, jobs); err != nil {
			return err
		}
	}
	return nil
}
