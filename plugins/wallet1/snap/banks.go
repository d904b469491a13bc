package snap

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// Bank is a bank of the list: Value is its code.
type Bank struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

// Banks is the list of banks. [ReadBanks] makes one.
type Banks struct {
	list   []Bank
	byCode map[string]Bank
}

// shariaMark ends the code of a sharia unit that shares its parent's clearing
// code. Providers know the three digits alone.
const shariaMark = "S"

// ReadBanks reads a table with the columns code and label. An error names the
// row that can't be used.
func ReadBanks(table []byte) (Banks, error) {
	rows, err := csv.NewReader(bytes.NewReader(table)).ReadAll()
	if err != nil {
		return Banks{}, fmt.Errorf("banks: %w", err)
	}
	if len(rows) < 2 || len(rows[0]) != 2 || rows[0][0] != "code" || rows[0][1] != "label" {
		return Banks{}, errors.New("banks: the table must begin with code,label and have rows")
	}
	b := Banks{byCode: map[string]Bank{}}
	for _, row := range rows[1:] {
		bank := Bank{Value: row[0], Label: row[1]}
		if !digits(bank.clearingCode(), 3, 3) || bank.Label == "" {
			return Banks{}, fmt.Errorf("banks: %q, %q is no bank", bank.Value, bank.Label)
		}
		if _, twice := b.byCode[bank.Value]; twice {
			return Banks{}, fmt.Errorf("banks: %s stands twice", bank.Value)
		}
		b.byCode[bank.Value] = bank
		b.list = append(b.list, bank)
	}
	return b, nil
}

// clearingCode is the bank's code as providers want it.
func (b Bank) clearingCode() string { return strings.TrimSuffix(b.Value, shariaMark) }

func (a *adapter) listBanks(context.Context, sdk.Call) sdk.Result {
	return sdk.Finished("", a.banks.list)
}

// beneficiary is an account at a bank.
type beneficiary struct {
	bank    Bank
	account string // digits
}

const minAccountDigits, maxAccountDigits = 4, 34

// beneficiary reads where a bank transfer goes to. What is wrong is refused
// before anybody is asked.
func (a *adapter) beneficiary(bankCode, accountNo string) (beneficiary, *sdk.Result) {
	bank, ok := a.banks.byCode[strings.ToUpper(strings.TrimSpace(bankCode))]
	if !ok {
		refused := wrongField("bank_code", "must be a code of /transfer/banks, like 014")
		return beneficiary{}, &refused
	}
	account := separators.Replace(accountNo)
	if !digits(account, minAccountDigits, maxAccountDigits) {
		refused := wrongField("account_no", "must be 4 to 34 digits")
		return beneficiary{}, &refused
	}
	return beneficiary{bank, account}, nil
}
