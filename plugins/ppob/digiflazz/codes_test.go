package digiflazz

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// expected is what an answer must come to: of an order's call, of the inquiry
// in a quote, of a lookup (the same request again, or a bill's status) and of a
// webhook.
type expected struct {
	call    sdk.Outcome
	quote   sdk.Outcome
	refusal sdk.RefusalCode // of both
	blame   sdk.Blame       // of both, and of the lookup
	again   sdk.Status
}

var (
	oursIsAtFault  = expected{sdk.NotSent, sdk.NotSent, "", sdk.BlameAccount, sdk.StatusUnknown}
	askedTooOften  = expected{sdk.Unknown, sdk.NotSent, "", sdk.BlameLimit, sdk.StatusUnknown}
	nameIsTaken    = expected{sdk.Unknown, sdk.NotSent, "", sdk.BlameNone, sdk.StatusUnknown}
	noProduct      = expected{sdk.Refused, sdk.Refused, sdk.RefuseProduct, sdk.BlameNone, sdk.StatusFailed}
	noDestination  = expected{sdk.Refused, sdk.Refused, sdk.RefuseDestination, sdk.BlameNone, sdk.StatusFailed}
	otherwise      = expected{sdk.Refused, sdk.Refused, sdk.RefuseOther, sdk.BlameNone, sdk.StatusFailed}
	isUnderway     = expected{sdk.Pending, sdk.Unknown, "", sdk.BlameNone, sdk.StatusPending}
	proofOfNothing = expected{sdk.Unknown, sdk.Unknown, "", sdk.BlameUpstream, sdk.StatusUnknown}
)

// everyCode is the whole table of the upstream's codes, with the status of each.
var everyCode = map[string]struct {
	status string
	want   expected
}{
	"00": {"Sukses", expected{sdk.Done, sdk.Done, "", sdk.BlameNone, sdk.StatusDone}},
	"01": {"Gagal", otherwise}, "02": {"Gagal", otherwise}, "03": {"Pending", isUnderway},
	"41": {"Gagal", oursIsAtFault}, "42": {"Gagal", oursIsAtFault},
	"43": {"Gagal", expected{sdk.Refused, sdk.Refused, sdk.RefuseProduct, sdk.BlameNone, sdk.StatusUnknown}},
	"44": {"Gagal", oursIsAtFault}, "45": {"Gagal", oursIsAtFault},
	"47": {"Gagal", expected{sdk.Refused, sdk.Refused, sdk.RefuseOther, sdk.BlameNone, sdk.StatusUnknown}},
	"49": {"Gagal", nameIsTaken},
	"50": {"Gagal", noDestination}, "51": {"Gagal", noDestination}, "52": {"Gagal", noDestination},
	"53": {"Gagal", noProduct}, "54": {"Gagal", noDestination}, "55": {"Gagal", noProduct}, "56": {"Gagal", otherwise},
	"57": {"Gagal", noDestination}, "58": {"Gagal", noProduct}, "59": {"Gagal", noDestination}, "60": {"Gagal", noDestination},
	"61": {"Gagal", oursIsAtFault}, "62": {"Gagal", noProduct}, "63": {"Gagal", noProduct}, "64": {"Gagal", oursIsAtFault},
	"65": {"Gagal", otherwise}, "66": {"Gagal", noProduct}, "67": {"Gagal", noProduct}, "68": {"Gagal", noProduct},
	"69": {"Gagal", noProduct}, "70": {"Gagal", otherwise}, "71": {"Gagal", noProduct}, "72": {"Gagal", otherwise},
	"73": {"Gagal", otherwise}, "74": {"Gagal", otherwise},
	"80": {"Gagal", oursIsAtFault}, "81": {"Gagal", oursIsAtFault}, "82": {"Gagal", oursIsAtFault},
	"83": {"Gagal", askedTooOften}, "85": {"Gagal", askedTooOften}, "86": {"Gagal", askedTooOften},
	"88": {"Gagal", oursIsAtFault}, "99": {"Pending", isUnderway},

	// What is in no table.
	"48": {"Gagal", proofOfNothing}, "": {"Gagal", proofOfNothing}, "0": {"Sukses", proofOfNothing}, "4x4": {"Gagal", proofOfNothing},
	"90": {"Gagal", expected{sdk.Unknown, sdk.Unknown, "", sdk.BlameUpstream, sdk.StatusFailed}},
	"91": {"Pending", isUnderway},
	"92": {"Sukses", proofOfNothing},
}

// answersTo runs an answer through everything that may get it.
func answersTo(t *testing.T, status int, body string) (call [2]sdk.Result, quoted sdk.Quoted, found [2]sdk.StatusUpdate) {
	t.Helper()
	up := newStub(t, map[string]canned{
		"/transaction ": {status, body}, "/transaction inq-pasca": {status, body},
		"/transaction pay-pasca": {status, body}, "/transaction status-pasca": {status, body},
	})
	c, a := connect(t, up.url), newAdapter()
	for i, quote := range []string{pulsaQuote, plnQuote} {
		call[i] = a.order(t.Context(), callOf(c, quote, 10850))
		found[i] = a.lookup(t.Context(), lookupOf(c, quote, 10850))
	}
	return call, a.quote(t.Context(), quoteOf(c, plnItem, `{"sku":"pln","target":"530000000001"}`)), found
}

// The same body may come with any HTTP status.
func TestEveryCode(t *testing.T) {
	t.Parallel()
	for rc, c := range everyCode {
		for _, status := range []int{http.StatusOK, http.StatusBadRequest, http.StatusInternalServerError} {
			t.Run(rc+" "+http.StatusText(status), func(t *testing.T) {
				t.Parallel()
				call, quoted, found := answersTo(t, status, anAnswer(c.status, rc, paid))
				for _, result := range call {
					checkOutcome(t, "call", c.want.call, c.want, result)
				}
				why := sdk.Result{Outcome: quoted.Outcome, Blame: quoted.Blame, Refusal: quoted.Refusal, Detail: quoted.Detail}
				of := c.want
				if of.quote == sdk.Refused {
					of.blame = sdk.BlameUpstream // which has answered
				}
				checkOutcome(t, "quote", of.quote, of, why)
				for i, f := range found {
					want := c.want.again
					if rc == codeNotFound && i == 1 {
						want = sdk.StatusNotFound
					}
					checkStanding(t, rc, want, c.want.blame, f)
				}
				ack := newAdapter().notify(t.Context(), webhook(connect(t, "http://127.0.0.1:1"), anAnswer(c.status, rc, paid)))
				if ack.Status != http.StatusOK || len(ack.Updates) == 0 != (c.want.again == sdk.StatusUnknown) {
					t.Fatalf("webhook: %+v", ack)
				}
				for _, f := range ack.Updates {
					checkStanding(t, rc, c.want.again, sdk.BlameNone, f)
				}
			})
		}
	}
}

func checkOutcome(t *testing.T, what string, outcome sdk.Outcome, want expected, got sdk.Result) {
	t.Helper()
	if got.Outcome != outcome || got.Refusal.Code != want.refusal || outcome != sdk.Done && outcome != sdk.Pending && got.Blame != want.blame {
		t.Errorf("%s: %+v, want %v %s blame %v", what, got, outcome, want.refusal, want.blame)
	}
	if outcome == sdk.Refused && (got.Refusal.Message == "" || !strings.Contains(got.Detail, "pesan")) {
		t.Errorf("%s: no words: %+v", what, got)
	}
	if strings.Contains(got.Refusal.Message, "pesan") {
		t.Errorf("%s: the upstream's words are shown to merchants: %+v", what, got)
	}
}

func checkStanding(t *testing.T, rc string, want sdk.Status, blame sdk.Blame, f sdk.StatusUpdate) {
	t.Helper()
	if f.Status != want || f.Blame != blame && want == sdk.StatusUnknown {
		t.Errorf("found %+v, want %v blame %v", f, want, blame)
	}
	ended := want == sdk.StatusDone || want == sdk.StatusFailed
	if (f.EventID != "") != ended {
		t.Errorf("event %q of %v", f.EventID, want)
	}
	if !ended && want != sdk.StatusPending {
		return
	}
	var data outcome
	if err := json.Unmarshal(f.Data, &data); err != nil || data.SN != "S1234554321N" || data.Message == "" {
		t.Errorf("%s: data %s, %v", rc, f.Data, err)
	}
	if f.Reference != reference || f.Amount != 10000 || f.Currency != "IDR" {
		t.Errorf("found %+v", f)
	}
}

// Amounts are the caller's only before the call.
func TestWrongAmounts(t *testing.T) {
	t.Parallel()
	for _, rc := range []string{"84", "87"} {
		call, quoted, found := answersTo(t, http.StatusOK, anAnswer("Gagal", rc, ""))
		if call[0].Refusal.Code != sdk.RefuseOther || quoted.Refusal.Code != sdk.RefuseRequest || quoted.Refusal.Fields[0].Field != "qty" || quoted.Blame != sdk.BlameUpstream ||
			found[0].Status != sdk.StatusFailed || found[1].Status != sdk.StatusFailed {
			t.Errorf("%s: %+v, %+v, %+v", rc, call, quoted, found)
		}
	}
}

// What can't be read in an inquiry is what the caller gave; in an order it is
// our own.
func TestMalformedRequests(t *testing.T) {
	t.Parallel()
	call, quoted, found := answersTo(t, http.StatusBadRequest, anAnswer("Gagal", "40", ""))
	for i := range call {
		if call[i].Outcome != sdk.NotSent || call[i].Blame != sdk.BlameAccount ||
			found[i].Status != sdk.StatusUnknown || found[i].Blame != sdk.BlameAccount {
			t.Errorf("%+v, %+v", call[i], found[i])
		}
	}
	if quoted.Outcome != sdk.Refused || quoted.Refusal.Code != sdk.RefuseRequest {
		t.Errorf("%+v", quoted)
	}
}

// Code and status must agree, and the answer must be about what was asked.
func TestAnswersThatContradictThemselves(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"failed with success":      anAnswer("Gagal", "00", ""),
		"failed under way":         anAnswer("Gagal", "03", ""),
		"failed with the router":   anAnswer("Gagal", "99", ""),
		"success with a failure":   anAnswer("Sukses", "02", bought),
		"success under way":        anAnswer("Sukses", "03", bought),
		"success without deposit":  anAnswer("Sukses", "44", bought),
		"pending with a failure":   anAnswer("Pending", "02", ""),
		"pending with success":     anAnswer("Pending", "00", ""),
		"pending without deposit":  anAnswer("Pending", "44", ""),
		"another word":             anAnswer("Berhasil", "00", bought),
		"no status":                anAnswer("", "00", bought),
		"no code":                  anAnswer("Sukses", "", bought),
		"another order's":          strings.ReplaceAll(anAnswer("Sukses", "00", bought), reference, "some1d"),
		"another order's failure":  strings.ReplaceAll(anAnswer("Gagal", "02", ""), reference, "some1d"),
		"another order's unlisted": strings.ReplaceAll(anAnswer("Gagal", "90", ""), reference, "some1d"),
		"nobody's success":         strings.ReplaceAll(anAnswer("Sukses", "00", bought), reference, ""),
		"nobody's pending":         strings.ReplaceAll(anAnswer("Pending", "03", ""), reference, ""),
		"nobody's unlisted":        strings.ReplaceAll(anAnswer("Gagal", "90", ""), reference, ""),
		"no object":                `{"data":[]}`,
		"null":                     `{"data":null}`,
		"no data":                  `{"rc":"00","status":"Sukses"}`,
		"nothing":                  ``,
		"a price in words":         anAnswer("Sukses", "00", `,"sn":"1","price":"mahal"`),
		"half a rupiah":            anAnswer("Sukses", "00", `,"sn":"1","price":10850.5`),
		"a price below zero":       anAnswer("Sukses", "00", `,"sn":"1","price":-1`),
		"garbage":                  "{\"\x00%%% garbage ]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call, quoted, found := answersTo(t, http.StatusOK, body)
			for i := range call {
				if call[i].Outcome != sdk.Unknown || call[i].Blame != sdk.BlameUpstream {
					t.Errorf("call: %+v", call[i])
				}
				if found[i].Status != sdk.StatusUnknown || found[i].Blame != sdk.BlameUpstream {
					t.Errorf("lookup: %+v", found[i])
				}
			}
			if quoted.Outcome != sdk.Unknown || quoted.Blame != sdk.BlameUpstream {
				t.Errorf("quote: %+v", quoted)
			}
		})
	}
}

// A refusal without a ref_id is still the answer to what was asked.
func TestRefusalsWithoutAReference(t *testing.T) {
	t.Parallel()
	for rc, want := range map[string]sdk.Outcome{"44": sdk.NotSent, "54": sdk.Refused} {
		call, _, _ := answersTo(t, http.StatusBadRequest, `{"data":{"rc":"`+rc+`","status":"Gagal","message":"m"}}`)
		if call[0].Outcome != want {
			t.Errorf("%s: %+v", rc, call[0])
		}
	}
}
