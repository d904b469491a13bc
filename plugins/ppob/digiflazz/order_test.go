package digiflazz

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

func TestOrderPrepaid(t *testing.T) {
	t.Parallel()
	for quote, sent := range map[string]string{
		pulsaQuote: `{"username":"username","buyer_sku_code":"xld10","customer_no":"087800001230","ref_id":"` + reference + `","sign":"` + signOf(reference) + `","max_price":10850}`,
		`{"type":"Prepaid","sku":"xld10","target":"087800001230","testing":true}`: `{"username":"username","buyer_sku_code":"xld10","customer_no":"087800001230","ref_id":"` +
			reference + `","sign":"` + signOf(reference) + `","testing":true,"max_price":10850}`,
	} {
		up := newStub(t, map[string]canned{"/transaction ": {200, anAnswer("Sukses", "00", bought)}})
		// The setting may have changed since the quote.
		c, a := connect(t, up.url, "testing", true), newAdapter()
		result := a.order(t.Context(), callOf(c, quote, 10850))
		if result.Outcome != sdk.Done || result.Amount != 10850 || string(result.Data) != `{"sn":"0041002331","message":"The order succeeded."}` {
			t.Errorf("got %+v, data %s", result, result.Data)
		}
		if got := up.only(t).raw; got != sent {
			t.Errorf("sent %s, want %s", got, sent)
		}
		// A lookup is the very same request.
		if found := a.lookup(t.Context(), lookupOf(c, quote, 10850)); found.Status != sdk.StatusDone || found.Amount != 10850 {
			t.Errorf("found %+v", found)
		}
		if asked := up.asked(); len(asked) != 2 || asked[1].raw != sent {
			t.Errorf("asked %v, want %s", asked, sent)
		}
	}
}

func signOf(what string) string { return credentials{username: testUser, key: testKey}.sign(what) }

func TestOrderBill(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string]canned{
		"/transaction pay-pasca":    {200, anAnswer("Sukses", "00", paid)},
		"/transaction status-pasca": {200, anAnswer("Sukses", "00", paid)},
	})
	c, a := connect(t, up.url, "testing", true), newAdapter()
	const quote = `{"type":"Pasca","sku":"emoney","target":"8102051011300001","year":"2024","amount":10000,"day":"2026-11-20"}`
	if result := a.order(t.Context(), callOf(c, quote, 10000)); result.Outcome != sdk.Done {
		t.Errorf("got %+v", result)
	}
	if found := a.lookup(t.Context(), lookupOf(c, quote, 10000)); found.Status != sdk.StatusDone || found.Amount != 10000 {
		t.Errorf("found %+v", found)
	}
	head := `","username":"username","buyer_sku_code":"emoney","customer_no":"8102051011300001","ref_id":"` + reference + `","sign":"` + signOf(reference) + `"`
	for i, want := range []string{
		`{"commands":"pay-pasca` + head + `,"amount":10000,"year":"2024"}`,
		`{"commands":"status-pasca` + head + `}`,
	} {
		if got := up.asked()[i].raw; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
	}
}

// A bill is paid on the day of its inquiry, which is a day in Jakarta.
func TestABillIsPaidOnItsDay(t *testing.T) {
	t.Parallel()
	midnight := time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)
	for at, want := range map[time.Time]sdk.Outcome{
		midnight.Add(-24 * time.Hour):      sdk.Done,
		midnight.Add(-time.Nanosecond):     sdk.Done,
		midnight:                           sdk.NotSent,
		midnight.Add(24 * time.Hour):       sdk.NotSent,
		midnight.Add(-24*time.Hour - 1):    sdk.NotSent,
		midnight.Add(365 * 24 * time.Hour): sdk.NotSent,
	} {
		up := newStub(t, map[string]canned{"/transaction pay-pasca": {200, anAnswer("Sukses", "00", paid)}})
		a := &adapter{now: func() time.Time { return at }}
		result := a.order(t.Context(), callOf(connect(t, up.url), plnQuote, 10000))
		if result.Outcome != want || len(up.asked()) == 0 != (want == sdk.NotSent) {
			t.Errorf("%v: %+v, asked %v", at, result, up.asked())
		}
		if want == sdk.NotSent && (result.Blame != sdk.BlameNone || !strings.Contains(result.Detail, "2026-11-20")) {
			t.Errorf("%v: %+v", at, result)
		}
	}
}

// An order can be asked for until its 85th day has passed: after 90 days the
// same request would buy again.
func TestLookupsEndAfter85Days(t *testing.T) {
	t.Parallel()
	replies := map[string]canned{
		"/transaction ":             {200, anAnswer("Sukses", "00", bought)},
		"/transaction status-pasca": {200, anAnswer("Sukses", "00", paid)},
	}
	const day = 24 * time.Hour
	for age, want := range map[time.Duration]sdk.Status{
		time.Minute: sdk.StatusDone, 85 * day: sdk.StatusDone,
		85*day + time.Nanosecond: sdk.StatusUnknown, 91 * day: sdk.StatusUnknown, 400 * day: sdk.StatusUnknown,
	} {
		for _, quote := range []string{pulsaQuote, plnQuote} {
			up := newStub(t, replies)
			l := lookupOf(connect(t, up.url), quote, 10850)
			l.SentAt = today.Add(-age)
			found := newAdapter().lookup(t.Context(), l)
			if found.Status != want || len(up.asked()) == 0 != (want == sdk.StatusUnknown) {
				t.Errorf("%v: %+v, asked %v", age, found, up.asked())
			}
			if want == sdk.StatusUnknown && (found.Detail == "" || found.Blame != sdk.BlameNone) {
				t.Errorf("%v: %+v", age, found)
			}
		}
	}
	up := newStub(t, replies)
	l := lookupOf(connect(t, up.url), pulsaQuote, 10850)
	l.SentAt = time.Time{}
	if found := newAdapter().lookup(t.Context(), l); found.Status != sdk.StatusUnknown || len(up.asked()) != 0 {
		t.Errorf("of no known age: %+v", found)
	}
}

func TestNothingIsSentAfterSendBy(t *testing.T) {
	t.Parallel()
	up := newStub(t, nil)
	for _, quote := range []string{pulsaQuote, plnQuote} {
		call := callOf(connect(t, up.url), quote, 10850)
		call.SendBy = time.Now().Add(-time.Millisecond)
		if result := newAdapter().order(t.Context(), call); result.Outcome != sdk.NotSent || result.Blame != sdk.BlameNone {
			t.Errorf("order: %+v", result)
		}
		l := lookupOf(connect(t, up.url), quote, 10850)
		l.SendBy = call.SendBy
		if found := newAdapter().lookup(t.Context(), l); found.Status != sdk.StatusUnknown || found.Blame != sdk.BlameNone {
			t.Errorf("lookup: %+v", found)
		}
	}
	late := sdk.Call{Connection: connect(t, up.url), Body: json.RawMessage(inquiryBody), Product: json.RawMessage(plnItem), SendBy: time.Now().Add(-time.Millisecond)}
	if result := newAdapter().products(t.Context(), late); result.Outcome != sdk.NotSent {
		t.Errorf("products: %+v", result)
	}
	if asked := up.asked(); len(asked) != 0 {
		t.Errorf("the upstream was asked %v", asked)
	}
}

// Without a quote of ours, or without a bound for the price, nothing is bought.
func TestOrdersWithoutAQuote(t *testing.T) {
	t.Parallel()
	up := newStub(t, nil)
	for name, quote := range map[string]string{
		"nothing": ``, "null": `null`, "an array": `[]`, "no sku": `{"type":"Prepaid","target":"087800001230"}`,
		"no target": `{"type":"Prepaid","sku":"xld10"}`, "no type": `{"sku":"xld10","target":"087800001230"}`,
		"another type": `{"type":"Gift","sku":"xld10","target":"087800001230"}`,
	} {
		c := connect(t, up.url)
		if result := newAdapter().order(t.Context(), callOf(c, quote, 10850)); result.Outcome != sdk.NotSent || result.Blame != sdk.BlameNone {
			t.Errorf("%s: %+v", name, result)
		}
		if found := newAdapter().lookup(t.Context(), lookupOf(c, quote, 10850)); found.Status != sdk.StatusUnknown {
			t.Errorf("%s: %+v", name, found)
		}
	}
	c := connect(t, up.url)
	if result := newAdapter().order(t.Context(), callOf(c, pulsaQuote, 0)); result.Outcome != sdk.NotSent {
		t.Errorf("no cost: %+v", result)
	}
	if found := newAdapter().lookup(t.Context(), lookupOf(c, pulsaQuote, 0)); found.Status != sdk.StatusUnknown {
		t.Errorf("no cost: %+v", found)
	}
	if asked := up.asked(); len(asked) != 0 {
		t.Errorf("the upstream was asked %v", asked)
	}
}

// A bill's inquiry and its payment share a ref_id: what may be the inquiry's
// answer is no payment's. A prepaid order may succeed without a number.
func TestASuccessWithoutASerialNumber(t *testing.T) {
	t.Parallel()
	for _, extra := range []string{asked, asked + `,"sn":""`, asked + `,"sn":null`} {
		_, _, found := answersTo(t, http.StatusOK, anAnswer("Sukses", "00", extra))
		if found[0].Status != sdk.StatusDone || found[1].Status != sdk.StatusUnknown || found[1].Blame != sdk.BlameNone {
			t.Errorf("%s: %+v", extra, found)
		}
		ack := newAdapter().notify(t.Context(), webhook(connect(t, "http://127.0.0.1:1"), anAnswer("Sukses", "00", extra)))
		if ack.Status != http.StatusOK || len(ack.Updates) != 0 {
			t.Errorf("%s: %+v", extra, ack)
		}
	}
}

// Serial numbers may be worth money: no bound on their form, and none in an id.
func TestSerialNumbers(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		`"1234-5678-9012-3456-7890/NUR ROCHMAH/R1/1300VA/12.5KWH"`: "1234-5678-9012-3456-7890/NUR ROCHMAH/R1/1300VA/12.5KWH",
		`12345678901234567890`: "12345678901234567890",
		`""`:                   "", `null`: "", `{}`: "", `false`: "",
	} {
		call, _, found := answersTo(t, http.StatusOK, anAnswer("Sukses", "00", `,"price":"20150","sn":`+written))
		var data outcome
		if err := json.Unmarshal(call[0].Data, &data); err != nil || data.SN != want {
			t.Errorf("%s: %s, %v", written, call[0].Data, err)
		}
		if found[0].Amount != 20150 || call[0].Amount != 20150 || want != "" && strings.Contains(found[0].EventID, want) {
			t.Errorf("%s: %+v", written, found[0])
		}
	}
}

func TestAShortSecretSpoilsNoSerialNumber(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string]canned{"/transaction ": {200, anAnswer("Sukses", "00", bought)}})
	result := newAdapter().order(t.Context(), callOf(connect(t, up.url, "webhook_secret", "0", "api_key", "41"), pulsaQuote, 10850))
	if !strings.Contains(string(result.Data), "0041002331") {
		t.Errorf("got %s", result.Data)
	}
}

func TestAPriceThatIsNotTold(t *testing.T) {
	t.Parallel()
	for _, extra := range []string{``, `,"price":null`, `,"price":""`} {
		_, _, found := answersTo(t, http.StatusOK, anAnswer("Sukses", "00", extra))
		if found[0].Status != sdk.StatusDone || found[0].Amount != 0 {
			t.Errorf("%s: %+v", extra, found[0])
		}
	}
}
