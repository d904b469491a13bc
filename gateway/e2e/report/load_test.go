package report_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// loop is a closed loop: each client has a connection, and sends its next request when
// it has read the answer to its last.
type loop struct {
	address string
	request func(client int) []byte // a whole HTTP request
	check   func(status int, body []byte) error
}

// run lets all clients ask for a while.
func (l loop) run(lasts time.Duration) (turn, error) {
	var group sync.WaitGroup
	took, faults := make([][]time.Duration, harness.BenchClients), make([]error, harness.BenchClients)
	began := time.Now()
	for client := range harness.BenchClients {
		group.Go(func() { took[client], faults[client] = l.ask(client, began.Add(lasts)) })
	}
	group.Wait()
	whole := turn{took: slices.Concat(took...), elapsed: time.Since(began)}
	slices.Sort(whole.took)
	for _, err := range faults {
		if err != nil {
			return turn{}, err
		}
	}
	return whole, nil
}

func (l loop) ask(client int, until time.Time) (took []time.Duration, err error) {
	conn, err := net.Dial("tcp", l.address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	reader, body := bufio.NewReaderSize(conn, 64<<10), bytes.Buffer{}
	for at := time.Now(); at.Before(until); {
		if _, err := conn.Write(l.request(client)); err != nil {
			return nil, err
		}
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			return nil, err
		}
		body.Reset()
		if _, err := io.Copy(&body, response.Body); err != nil {
			return nil, err
		}
		if err := l.check(response.StatusCode, body.Bytes()); err != nil {
			return nil, err
		}
		now := time.Now()
		took = append(took, now.Sub(at))
		at = now
	}
	return took, nil
}

// once sends the first client's request.
func (l loop) once() (status int, answered []byte, err error) {
	asked := errors.New("that is all")
	single := loop{l.address, l.request, func(got int, body []byte) error {
		status, answered = got, bytes.Clone(body)
		return asked
	}}
	if _, err = single.ask(0, time.Now().Add(time.Minute)); errors.Is(err, asked) {
		err = nil
	}
	return status, answered, err
}

// get and post are whole requests.
func get(path, headers string) []byte {
	return []byte("GET " + path + " HTTP/1.1\r\nHost: bench\r\n" + headers + "\r\n")
}

func post(path, headers string, body []byte) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", path, headers, len(body), body)
}

// same wants the same answer each time.
func same(want []byte) func(int, []byte) error {
	return func(status int, body []byte) error {
		if status != http.StatusOK || !bytes.Equal(body, want) {
			return fmt.Errorf("answered %d %.300s, want %.300s", status, body, want)
		}
		return nil
	}
}

// success wants any success of the contract.
func success(status int, body []byte) error {
	if status != http.StatusOK || !bytes.HasPrefix(body, []byte(`{"success":true,`)) {
		return fmt.Errorf("answered %d %.300s", status, body)
	}
	return nil
}

func TestLoopChecksEachAnswer(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 100_000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		if got, _ := io.ReadAll(r.Body); string(got) == "wrong" {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = w.Write([]byte(`{"success":true,"data":1}`))
	}))
	t.Cleanup(server.Close)
	l := loop{address: strings.TrimPrefix(server.URL, "http://"), request: func(int) []byte { return post("/", "", []byte("right")) }, check: success}
	got, err := l.run(50 * time.Millisecond)
	if err != nil || len(got.took) != len(asked) || got.elapsed < 50*time.Millisecond || !slices.IsSorted(got.took) {
		t.Errorf("%d answers to %d requests in %v, %v", len(got.took), len(asked), got.elapsed, err)
	}
	l.request = func(client int) []byte { return post("/", "", []byte([]string{"right", "wrong"}[client%2])) }
	if got, err := l.run(50 * time.Millisecond); err == nil {
		t.Errorf("%d answers, and none was wrong", len(got.took))
	}
}
