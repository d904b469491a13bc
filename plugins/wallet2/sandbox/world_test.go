package sandbox_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/plugins/wallet2/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/qris"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// start is ten in the morning in Jakarta.
var start = time.Date(2026, 1, 15, 3, 0, 0, 0, time.UTC)

// world is a simulator that listens, and its shop.
type world struct {
	t       *testing.T
	options sandbox.Options
	clock   *kit.ManualClock
	state   string
	env     *kit.Env
	up      *sandbox.Simulator
	api     *httptest.Server
	shop    shop
}

// shop is what the plugin's connection has.
type shop struct {
	StaticCode   string            `json:"static_code"`
	MerchantCode string            `json:"merchant_code"`
	Reports      map[string]string `json:"reports"`
	ReportsLate  string            `json:"reports_late"`
}

func open(t *testing.T, change ...func(*sandbox.Options)) *world {
	t.Helper()
	w := &world{t: t, options: sandbox.DefaultOptions(), clock: kit.NewManualClock(start), state: t.TempDir()}
	for _, c := range change {
		c(&w.options)
	}
	w.start()
	t.Cleanup(w.stop)
	w.shop = w.connect("m", "test")
	return w
}

func (w *world) start() {
	w.t.Helper()
	var err error
	if w.env, err = kit.Open(kit.Config{Provider: "wallet2", StateDir: w.state, Token: "t", Clock: w.clock}); err != nil {
		w.t.Fatal(err)
	}
	if w.up, err = sandbox.New(w.env, w.options); err != nil {
		w.t.Fatal(err)
	}
	w.api = httptest.NewServer(w.env.Handler(w.up))
}

func (w *world) stop() {
	w.api.Close()
	if err := w.env.Close(); err != nil {
		w.t.Error(err)
	}
}

// order gives a control order and decodes its answer.
func (w *world) order(name string, body, into any) int {
	w.t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	request, err := http.NewRequestWithContext(w.t.Context(), method, w.api.URL+"/_sandbox/"+name, bytes.NewReader(encoded))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer t")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if response.StatusCode == http.StatusOK && into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			w.t.Fatalf("%s: %s", name, answer)
		}
	}
	return response.StatusCode
}

func (w *world) connect(merchant, mode string) shop {
	w.t.Helper()
	var opened struct{ Credentials shop }
	if status := w.order("connect", map[string]string{"merchant": merchant, "mode": mode}, &opened); status != http.StatusOK {
		w.t.Fatalf("connect: %d", status)
	}
	return opened.Credentials
}

// code makes the code of a sale.
func (s shop) code(t *testing.T, amount money.Amount) string {
	t.Helper()
	printed, err := qris.Parse(s.StaticCode)
	if err != nil {
		t.Fatal(err)
	}
	made, err := printed.Dynamic(amount)
	if err != nil {
		t.Fatal(err)
	}
	return made.String()
}

// pay pays a sale of the shop.
func (w *world) pay(amount money.Amount) kit.Receipt {
	w.t.Helper()
	receipt, err := w.up.Pay(kit.PayRequest{QRString: w.shop.code(w.t, amount)})
	if err != nil {
		w.t.Fatal(err)
	}
	return receipt
}

// reports are the shop's documents in the order of their names.
func (w *world) reports() (names []string, documents [][][]string) {
	w.t.Helper()
	paths, err := filepath.Glob(filepath.Join(w.shop.Reports["directory"], "*.csv"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // an empty report, of which a newer one says more
		}
		if err != nil {
			w.t.Fatal(err)
		}
		reader := csv.NewReader(bytes.NewReader(text))
		reader.FieldsPerRecord = -1
		rows, err := reader.ReadAll()
		if err != nil {
			w.t.Fatal(err)
		}
		names, documents = append(names, filepath.Base(path)), append(documents, rows)
	}
	return names, documents
}

// rows are those of all reports, as "status amount".
func (w *world) rows() string {
	w.t.Helper()
	_, documents := w.reports()
	var all []string
	for _, d := range documents {
		for _, row := range d[1:] {
			all = append(all, row[8]+" "+strings.TrimSuffix(row[2], ".00"))
		}
	}
	return strings.Join(all, ", ")
}

// until waits for what happens in the background.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline.C:
			w.t.Fatalf("waited in vain: %s; there is %s", what, w.rows())
		case <-tick.C:
		}
	}
}
