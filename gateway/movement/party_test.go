package movement_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

func TestDestination(t *testing.T) {
	t.Parallel()
	for want, spellings := range map[string][]string{
		"014/2460888509": {
			"014:2460888509", "014/2460 888 509", "014/2460-888-509", " 014/2460888509", "bank/014/2460.888.509", "０１４/２４６０８８８５０９", "014/2460\u200b888509",
			"014 : 2460\u00a0888\u2011509", "014/٢٤٦٠٨٨٨٥٠٩", "BANK/014/2460888509",
		},
		"62811742234": {
			"0811742234", "62811742234", "+62811742234", "0811-742-234", "811742234", "+62 811 742 234", "(0811) 742.234", "phone/62811742234", "０８１１７４２２３４", "0811\u2060742234",
		},
		"bca/0811742234":         {"BCA/0811742234", "bca:0811-742-234"}, // an account, not a phone
		"3201,2026":              {"3201, 2026"},
		"12345678|1234":          {"12345678|1234"},
		"somebody@mail.example":  {" Somebody@Mail.Example "},
		"0411742234":             {"0411742234"},
		"john.doe-1":             {"John.Doe-1", " john.doe-1\x00"}, // dots and dashes of a name are part of it
		"6281174223412345678901": {"6281174223412345678901"},
		"":                       {"", " ", "\u200b", "bank/"},
	} {
		for _, text := range spellings {
			if got := movement.Destination(text); got != want {
				t.Errorf("%q is %q, want %q", text, got, want)
			}
		}
	}
	if got := movement.Payer(" Ayu.Sari@Mail.EXAMPLE\u200b"); got != "ayu.sari@mail.example" {
		t.Errorf("the payer is %q", got)
	}
}

// FuzzDestination spells a destination otherwise: what people write between digits, and digits of another width, change nothing,
// and the one form is its own.
func FuzzDestination(f *testing.F) {
	for _, text := range []string{"014/2460888509", "0811742234", "phone/62811742234", "bank/bank/1", "a:b:c", "+62 ", "½/８", "x@y", "bank : 1", "phone / phone/ 1", " / ", "a:b/c", "\x00"} {
		f.Add(text, uint64(12345))
	}
	between := []string{" ", "-", ".", "\u200b", "\u00a0", "\u2011", "\u2060"}
	f.Fuzz(func(t *testing.T, text string, choice uint64) {
		once := movement.Destination(text)
		if again := movement.Destination(once); again != once {
			t.Fatalf("%q is %q, and that is %q", text, once, again)
		}
		if once == "" || strings.Trim(once, "0123456789/") != "" {
			return
		}
		var spelt strings.Builder
		for _, r := range once {
			if choice%3 == 0 && unicode.IsDigit(r) {
				r += '０' - '0'
			}
			spelt.WriteRune(r)
			if choice%2 == 0 {
				spelt.WriteString(between[choice%uint64(len(between))])
			}
			choice = choice*6364136223846793005 + 1442695040888963407
		}
		if got := movement.Destination(spelt.String()); got != once {
			t.Fatalf("%q is %q, want %q", spelt.String(), got, once)
		}
	})
}
