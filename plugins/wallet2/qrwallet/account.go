package qrwallet

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // reports are read alike on machines without zones

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/qris"
)

// defaultZone is where the upstream's clocks are, unless a connection differs.
const defaultZone = "Asia/Jakarta"

// credentials are as the manifest's connection schema has them.
type credentials struct {
	StaticCode   string    `json:"static_code"`
	MerchantCode string    `json:"merchant_code"`
	Reports      reportsAt `json:"reports"`
	TimeZone     string    `json:"time_zone"`
	ReportsLate  string    `json:"reports_late"`
}

type reportsAt struct {
	Directory string `json:"directory"`
	URL       string `json:"url"`
	Token     string `json:"token"`
}

// account is a wallet that can be collected into.
type account struct {
	code      qris.Code
	merchant  string    // as reports name it
	terminal  string    // likewise, "" where the code names none
	terminals terminals // whose rows are ours, as the cursor has it
	zone      *time.Location
	late      time.Duration // a report has every payment made this long before its time
	reports   source
}

// name is what the account is called, the same for every code that pays it. All
// terminals of a merchant are one account, that one of us owns: a row need not say
// by which terminal its money came, and would pay a sale of each.
func (a account) name() string { return a.merchant }

// open reads a connection. Its errors are for whoever gave the credentials, and
// hold nothing of them but what is on the shop's wall.
func open(c sdk.Connection) (account, error) {
	var given credentials
	if err := json.Unmarshal(c.Credentials, &given); err != nil {
		return account{}, errors.New("the credentials are not as the manifest has them")
	}
	code, err := readStatic(given.StaticCode)
	if err != nil {
		return account{}, err
	}
	a := account{code: code}
	if a.merchant, err = merchantOf(code); err != nil {
		return account{}, err
	}
	a.terminal, _ = code.Value("62-07")
	if given.MerchantCode != a.name() {
		return account{}, fmt.Errorf("merchant_code: the static code pays %q", a.name())
	}
	zone := given.TimeZone
	if zone == "" {
		zone = defaultZone
	}
	if a.zone, err = time.LoadLocation(zone); err != nil {
		return account{}, fmt.Errorf("time_zone: %q is not known", zone)
	}
	if a.late, err = lateness(given.ReportsLate); err != nil {
		return account{}, err
	}
	a.reports, err = sourceOf(given.Reports)
	return a, err
}

// lateness reads how late rows may be. It is never more than the manifest says; so long
// the amounts of sales that have ended are nobody else's, as the gateway reads it, too.
func lateness(text string) (time.Duration, error) {
	if text == "" {
		return reportsLate, nil
	}
	late, err := time.ParseDuration(text)
	if err != nil || late < time.Second || late > reportsLate {
		return 0, errors.New("reports_late: write it like 90s, 15m or 2h: at least a second and at most two hours")
	}
	return late, nil
}

func readStatic(text string) (qris.Code, error) {
	code, err := qris.Parse(text)
	if err != nil {
		return qris.Code{}, fmt.Errorf("static_code: %s", strings.TrimPrefix(err.Error(), "qris: "))
	}
	if code.Point() != qris.Static {
		return qris.Code{}, errors.New("static_code: tag 01 says dynamic (12), a code for one payment; the printed code of the shop is static (11)")
	}
	return code, nil
}

// merchantOf is the national id of whom a code pays, and in codes without one
// the number of the first account.
func merchantOf(code qris.Code) (string, error) {
	if id := code.NationalID(); id != "" {
		return id, nil
	}
	for tag := 26; tag <= 45; tag++ {
		if number, ok := code.Value(fmt.Sprintf("%d-01", tag)); ok && number != "" {
			return number, nil
		}
	}
	return "", errors.New("static_code: tags 26 to 51 name no merchant: neither 51-02 nor an account number (01)")
}
