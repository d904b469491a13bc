package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk/qris"
)

// printed is a published example of a static code.
const printed = "00020101021126670018ID.CO.EXAMPLE2.WWW01159360001404567890215MIDCONTOH1234560303UMI51370014ID.CO.QRIS.WWW" +
	"0215ID10191234567815204123453033605802ID5914NamaMerchantC16009NamaKota16110123456789062070703K196304B22E"

func TestInspect(t *testing.T) {
	t.Parallel()
	code, p := run(t, nil, "", "qris", "inspect", printed)
	for _, want := range []string{
		"01     use                   11 (static", "26-01  account number        936000140456789\n",
		"51-02  national merchant id  ID1019123456781\n", "62-07  terminal              K19\n", "63     checksum              B22E\n",
	} {
		if code != exitOK || !strings.Contains(p.output.String(), want) {
			t.Errorf("exit %d, no %q in\n%s", code, want, p.output.String())
		}
	}
	code, p = run(t, nil, "", "--json", "qris", "inspect", printed)
	var fields []qris.Field
	if err := json.Unmarshal(p.output.Bytes(), &fields); code != exitOK || err != nil || fields[0] != (qris.Field{Tag: "00", Value: "01"}) {
		t.Errorf("exit %d, %v, %+v", code, err, fields)
	}
}

func TestInspectNamesTheFault(t *testing.T) {
	t.Parallel()
	for fault, text := range map[string]string{
		"tag 63 is not the checksum": strings.Replace(printed, "B22E", "B22F", 1),
		"tag 63 must be the last":    "000201010211",
		"tag 26":                     printed[:40],
		"tag 53 must be 360":         sealed(strings.Replace(printed, "5303360", "5303156", 1)),
	} {
		code, p := run(t, nil, "", "qris", "inspect", text)
		if code != exitRefused || !strings.Contains(p.errors.String(), fault) || p.output.Len() > 0 {
			t.Errorf("%s: exit %d, %q, %q", fault, code, p.errors.String(), p.output.String())
		}
	}
	if code, _ := run(t, nil, "", "qris", "inspect"); code != exitUsage {
		t.Errorf("without a code: exit %d", code)
	}
}

// sealed gives a text that was changed its right checksum.
func sealed(text string) string {
	text = text[:len(text)-4]
	return text + qris.Checksum(text)
}
