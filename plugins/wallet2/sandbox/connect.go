package sandbox

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/qris"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// The published example of a static code, of which each account's is made: the
// numbers in it are replaced by others of the same length, and the checksum,
// which is left away here, follows.
const (
	demoCode = "00020101021126670018ID.CO.EXAMPLE2.WWW01159360001404567890215MIDCONTOH1234560303UMI" +
		"51370014ID.CO.QRIS.WWW0215ID10191234567815204123453033605802ID5914NamaMerchantC16009NamaKota1" +
		"6110123456789062070703K196304"
	demoNational = "ID1019123456781"
	demoNumber   = "936000140456789"
)

// terminal is the label that every code of ours has.
const terminal = "K19"

// account is one shop's wallet.
type account struct {
	merchant string
	code     qris.Code
	waiting  []line    // rows that no report has yet
	last     []line    // of the last report
	reported time.Time // when that was
	blank    string    // the last report, where it has no row
}

// accountEvent is how the journal keeps an account.
type accountEvent struct {
	Merchant string `json:"merchant"`
	Code     string `json:"code"`
}

// credentials are what the plugin's connection wants.
type credentials struct {
	StaticCode   string            `json:"static_code"`
	MerchantCode string            `json:"merchant_code"`
	Reports      map[string]string `json:"reports"`
	ReportsLate  string            `json:"reports_late"`
}

// Connect opens an account with a printed code of its own; its national merchant
// id names it.
func (s *Simulator) Connect(_, key, token, _ string) kit.Connection {
	sum := sha256.Sum256([]byte(key))
	merchant := fmt.Sprintf("ID10%011d", binary.BigEndian.Uint64(sum[:])%100_000_000_000)
	number := fmt.Sprintf("93600014%07d", binary.BigEndian.Uint64(sum[8:])%10_000_000)
	text := strings.NewReplacer(demoNational, merchant, demoNumber, number).Replace(demoCode)
	text += qris.Checksum(text)
	if err := s.open(accountEvent{merchant, text}); err != nil {
		// The caller learns it from reports that are not there.
		s.env.Log.Error("account not opened", "merchant", merchant, "err", err)
	}
	return kit.Connection{
		Account: merchant, CallbackToken: token,
		Credentials: credentials{text, merchant, map[string]string{"directory": s.directory(merchant)}, s.lateness()},
	}
}

// slack is how much longer than a payment waits for its row a report may lack it:
// times of payments are whole seconds, and a row is written a moment after.
const slack = 5 * time.Second

// lateness is how late rows may be, as the connection says, within what a
// connection may say.
func (s *Simulator) lateness() string {
	late := min(s.options.Late+slack, 2*time.Hour).Round(time.Second)
	return fmt.Sprintf("%ds", int(late.Seconds()))
}

// directory is where an account's reports are dropped.
func (s *Simulator) directory(merchant string) string {
	state, err := filepath.Abs(s.env.StateDir)
	if err != nil {
		state = s.env.StateDir
	}
	return filepath.Join(state, "reports", merchant)
}

func (s *Simulator) open(e accountEvent) error {
	if err := os.MkdirAll(s.directory(e.Merchant), 0o700); err != nil {
		return err
	}
	s.mu.Lock()
	_, known := s.accounts[e.Merchant]
	s.mu.Unlock()
	if known {
		return nil
	}
	if err := s.commit(s.accountTopic.Entry(e)); err != nil {
		return err
	}
	s.agenda.Add(s.env.Clock.Now(), task{merchant: e.Merchant, again: true})
	return nil
}

func (s *Simulator) applyAccount(e accountEvent) {
	code, err := qris.Parse(e.Code)
	if err != nil {
		s.env.Log.Error("an account's code can't be read", "merchant", e.Merchant, "err", err)
		return
	}
	if _, known := s.accounts[e.Merchant]; !known {
		s.accounts[e.Merchant] = &account{merchant: e.Merchant, code: code}
	}
}
