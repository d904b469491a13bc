package money_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want money.Amount
		err  error
	}{
		{"0", 0, nil},
		{"0.00", 0, nil},
		{"0e999999999999999999999", 0, nil},
		{"10000", 10000, nil},
		{"10000.00", 10000, nil},
		{"1e4", 10000, nil},
		{"1E+4", 10000, nil},
		{"100000e-1", 10000, nil},
		{"1.5e1", 15, nil},
		{"0.0001e4", 1, nil},
		{"1000000000000", money.Max, nil},
		{"1e12", money.Max, nil},
		{"1000000000000.0", money.Max, nil},
		{"1000000000001", 0, money.ErrTooLarge},
		{"1e13", 0, money.ErrTooLarge},
		{"9223372036854775808", 0, money.ErrTooLarge},
		{"1e999999999999999999999", 0, money.ErrTooLarge},
		{"0.5", 0, money.ErrFraction},
		{"10000.01", 0, money.ErrFraction},
		{"15e-1", 0, money.ErrFraction},
		{"1e-999999999999999999999", 0, money.ErrFraction},
		{"-1", 0, money.ErrNegative},
		{"-0", 0, money.ErrNegative},
		{"-x", 0, money.ErrSyntax},
		{"", 0, money.ErrSyntax},
		{" 1", 0, money.ErrSyntax},
		{"1 ", 0, money.ErrSyntax},
		{"+1", 0, money.ErrSyntax},
		{"01", 0, money.ErrSyntax},
		{"1.", 0, money.ErrSyntax},
		{".5", 0, money.ErrSyntax},
		{"1e", 0, money.ErrSyntax},
		{"1e+", 0, money.ErrSyntax},
		{"1e1.0", 0, money.ErrSyntax},
		{"1,000", 0, money.ErrSyntax},
		{"0x10", 0, money.ErrSyntax},
		{"NaN", 0, money.ErrSyntax},
		{"\"10000\"", 0, money.ErrSyntax},
		{"null", 0, money.ErrSyntax},
		{"١", 0, money.ErrSyntax},
	} {
		got, err := money.Parse(c.text)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("Parse(%q) = %d, %v; want %d, %v", c.text, got, err, c.want, c.err)
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	var body struct {
		Amount money.Amount `json:"amount"`
	}
	if err := json.Unmarshal([]byte(`{"amount":1.0e4}`), &body); err != nil || body.Amount != 10000 {
		t.Errorf("got %d, %v", body.Amount, err)
	}
	out, err := json.Marshal(body)
	if err != nil || string(out) != `{"amount":10000}` {
		t.Errorf("got %s, %v", out, err)
	}
	for _, bad := range []string{`{"amount":"10000"}`, `{"amount":1.5}`, `{"amount":-1}`, `{"amount":true}`} {
		body.Amount = 7
		if err := json.Unmarshal([]byte(bad), &body); err == nil || body.Amount != 7 {
			t.Errorf("%s was read as %d, %v", bad, body.Amount, err)
		}
	}
	var amount money.Amount
	if err := amount.UnmarshalJSON([]byte("null")); !errors.Is(err, money.ErrSyntax) {
		t.Errorf("null: %v", err)
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		amount                   money.Amount
		text, decimals, readable string
	}{
		{0, "0", "0.00", "Rp0"},
		{999, "999", "999.00", "Rp999"},
		{1000, "1000", "1000.00", "Rp1.000"},
		{10000, "10000", "10000.00", "Rp10.000"},
		{money.Max, "1000000000000", "1000000000000.00", "Rp1.000.000.000.000"},
		{-123456, "-123456", "-123456.00", "-Rp123.456"},
		{math.MinInt64, "-9223372036854775808", "-9223372036854775808.00", "-Rp9.223.372.036.854.775.808"},
	} {
		if got := c.amount.String(); got != c.text {
			t.Errorf("String: %s, want %s", got, c.text)
		}
		if got := c.amount.Decimal2(); got != c.decimals {
			t.Errorf("Decimal2: %s, want %s", got, c.decimals)
		}
		if got := c.amount.Format(); got != c.readable {
			t.Errorf("Format: %s, want %s", got, c.readable)
		}
	}
}

// TestArithmetic holds the three operations against numbers without a limit.
func TestArithmetic(t *testing.T) {
	t.Parallel()
	numbers := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{
		0, 1, -1, math.MaxInt64, math.MinInt64, math.MinInt64 + 1, 1 << 32,
	}))
	rapid.Check(t, func(rt *rapid.T) {
		a, b := numbers.Draw(rt, "a"), numbers.Draw(rt, "b")
		x, y := big.NewInt(a), big.NewInt(b)
		sum, sumErr := money.Amount(a).Add(money.Amount(b))
		diff, diffErr := money.Amount(a).Sub(money.Amount(b))
		agree(rt, "Add", sum, sumErr, new(big.Int).Add(x, y))
		agree(rt, "Sub", diff, diffErr, new(big.Int).Sub(x, y))
	})
}

func agree(rt *rapid.T, name string, got money.Amount, err error, want *big.Int) {
	rt.Helper()
	switch {
	case !want.IsInt64():
		if !errors.Is(err, money.ErrOverflow) {
			rt.Fatalf("%s: %d, %v; want an overflow of %s", name, got, err, want)
		}
	case err != nil || int64(got) != want.Int64():
		rt.Fatalf("%s: %d, %v; want %s", name, got, err, want)
	}
}

// TestParseAgreesWithRationals writes one amount in many ways.
func TestParseAgreesWithRationals(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		want := rapid.Int64Range(0, int64(money.Max)).Draw(rt, "amount")
		shift := rapid.IntRange(0, 20).Draw(rt, "shift")
		zeros := strings.Repeat("0", rapid.IntRange(1, 5).Draw(rt, "zeros"))
		plain := strconv.FormatInt(want, 10)
		texts := []string{plain, plain + "." + zeros}
		if want > 0 {
			texts = append(texts,
				plain+strings.Repeat("0", shift)+"e-"+strconv.Itoa(shift),
				"0."+plain+"E"+strconv.Itoa(len(plain)))
		}
		for _, text := range texts {
			if got, err := money.Parse(text); err != nil || int64(got) != want {
				rt.Fatalf("Parse(%s) = %d, %v", text, got, err)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"10000", "10000.00", "1e4", "-1", "0.5", "1e-3", "1e99", "00", "\"1\"", "{}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := money.Parse(text)
		isNumber := json.Valid([]byte(text)) && text != "" && strings.ContainsAny(text[:1], "-0123456789") &&
			strings.TrimSpace(text) == text
		if (err == nil || !errors.Is(err, money.ErrSyntax)) != isNumber {
			t.Fatalf("Parse(%q) = %d, %v; a JSON number: %t", text, got, err, isNumber)
		}
		if err != nil {
			return
		}
		if got < 0 || got > money.Max {
			t.Fatalf("Parse(%q) = %d", text, got)
		}
		// The exponent is bounded before big arithmetic, which would not end.
		if exact, ok := new(big.Rat).SetString(text); len(text) < 20 && !strings.ContainsAny(text, "eE") && ok {
			if exact.Cmp(new(big.Rat).SetInt64(int64(got))) != 0 {
				t.Fatalf("Parse(%q) = %d", text, got)
			}
		}
	})
}
