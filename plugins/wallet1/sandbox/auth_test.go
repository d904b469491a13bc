package sandbox_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/plugins/wallet1/sandbox"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

const (
	good       = "62811742234"
	inquiryAt  = "/v1.0/emoney/account-inquiry"
	accountNo  = "2460888509"
	tokenAfter = 15 * time.Minute
)

func set(name, value string) func(http.Header) {
	return func(h http.Header) { h.Set(name, value) }
}

func without(name string) func(http.Header) {
	return func(h http.Header) { h.Del(name) }
}

func inquiry(c *client, change ...func(http.Header)) string {
	c.w.t.Helper()
	return text(c.post(inquiryAt, topupOf("", good, 10_000), change...), "responseCode")
}

func TestToken(t *testing.T) {
	t.Parallel()
	w := open(t)
	got := w.main.want("2007300", w.main.login())
	if text(got, "tokenType") != "Bearer" || got["expiresIn"] != "900" || text(got, "accessToken") == "" {
		t.Errorf("%v", got)
	}
	late := start.Add(-5*time.Minute - time.Second).Format(time.RFC3339)
	edge := start.Add(5 * time.Minute).Format("2006-01-02T15:04:05.000Z07:00")
	for name, c := range map[string]struct {
		change func(http.Header)
		code   string
	}{
		"unknown client":  {set("X-CLIENT-KEY", "nobody"), "4017300"},
		"wrong signature": {set("X-SIGNATURE", w.main.rsa("x|"+w.main.now())), "4017300"},
		"no signature":    {without("X-SIGNATURE"), "4007302"},
		"no timestamp":    {without("X-TIMESTAMP"), "4007302"},
		"no client":       {without("X-CLIENT-KEY"), "4007302"},
		"no JSON":         {set("Content-Type", "text/plain"), "4007301"},
		"no time":         {set("X-TIMESTAMP", "yesterday"), "4007301"},
		"old": {func(h http.Header) {
			h.Set("X-TIMESTAMP", late)
			h.Set("X-SIGNATURE", w.main.rsa(w.main.clientID+"|"+late))
		}, "4017300"},
		"fast": {func(h http.Header) {
			h.Set("X-TIMESTAMP", edge)
			h.Set("X-SIGNATURE", w.main.rsa(w.main.clientID+"|"+edge))
		}, "2007300"},
	} {
		if got := text(w.main.login(c.change), "responseCode"); got != c.code {
			t.Errorf("%s: %s, want %s", name, got, c.code)
		}
	}
}

func TestTokenExpires(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.main
	c.login()
	w.clock.Advance(tokenAfter - 1)
	if got := inquiry(c); got != "2003700" {
		t.Errorf("before its end: %s", got)
	}
	w.clock.Advance(1)
	if got := inquiry(c); got != "4013701" {
		t.Errorf("after its end: %s", got)
	}
	c.login()
	w.kill()
	if got := inquiry(c); got != "2003700" {
		t.Errorf("after a restart: %s", got)
	}
	w.order(200, "tokens", object{"client_id": c.clientID})
	w.kill()
	if got := inquiry(c); got != "4013701" {
		t.Errorf("after the order and a restart: %s", got)
	}
	c.login()
	if got := inquiry(c); got != "2003700" {
		t.Errorf("with a new one: %s", got)
	}
	w.order(200, "tokens", object{})
	if got := inquiry(c); got != "4013701" {
		t.Errorf("after the order for all: %s", got)
	}
	w.order(404, "tokens", object{"client_id": "nobody"})
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.main
	other := w.client(w.up.Connect("test", "other", "token", w.api.URL))
	c.login()
	other.login()
	for name, check := range map[string]struct {
		change func(http.Header)
		code   string
	}{
		"all":                   {func(http.Header) {}, "2003700"},
		"no external id":        {without("X-EXTERNAL-ID"), "4003702"},
		"no partner":            {without("X-PARTNER-ID"), "4003702"},
		"no channel":            {without("CHANNEL-ID"), "4003702"},
		"no content type":       {without("Content-Type"), "4003701"},
		"external id of words":  {set("X-EXTERNAL-ID", "abc"), "4003701"},
		"long external id":      {set("X-EXTERNAL-ID", strings.Repeat("1", 37)), "4003701"},
		"longest external id":   {set("X-EXTERNAL-ID", strings.Repeat("1", 36)), "2003700"},
		"no time":               {set("X-TIMESTAMP", "2026-01-15 10:00:00"), "4003701"},
		"too old":               {set("X-TIMESTAMP", start.Add(-301*time.Second).Format(time.RFC3339)), "4013700"},
		"too new":               {set("X-TIMESTAMP", start.Add(301*time.Second).Format(time.RFC3339)), "4013700"},
		"old":                   {set("X-TIMESTAMP", start.Add(-300*time.Second).Format(time.RFC3339)), "2003700"},
		"unknown partner":       {set("X-PARTNER-ID", "1"), "4013700"},
		"the client id":         {set("X-PARTNER-ID", c.clientID), "4013700"},
		"another's partner id":  {set("X-PARTNER-ID", other.partnerID), "4013701"},
		"another's token":       {set("Authorization", "Bearer "+other.token), "4013701"},
		"a broken token":        {set("Authorization", "Bearer "+c.token[1:]), "4013701"},
		"no token":              {without("Authorization"), "4013703"},
		"another channel":       {set("CHANNEL-ID", "1"), "4013700"},
		"wrong signature":       {set("X-SIGNATURE", "J7Mj5mAruP73VRj3hE15DD315A+/noagYpc8Zoe8LBTfCo2rmHiqFPK37NY5Is0YvvhxJ66h094e/bezRRC4+w=="), "4013700"},
		"asymmetric signature":  {set("X-SIGNATURE", c.rsa("POST:"+inquiryAt)), "4013700"},
		"signature of elsewhat": {set("X-SIGNATURE", c.sign(inquiryAt, []byte("{}"), http.Header{"X-Timestamp": {c.now()}, "Authorization": {"Bearer " + c.token}})), "4013700"},
	} {
		if got := inquiry(c, check.change); got != check.code {
			t.Errorf("%s: %s, want %s", name, got, check.code)
		}
	}
	c.want("4003700", c.post(inquiryAt, []byte("no json")))
	c.want("4003702", c.post(inquiryAt, []byte("")))
	c.want("4050000", c.post("/v1.0/emoney/nothing", object{}))
	// The query is part of what is signed.
	c.want("2003700", c.post(inquiryAt+"?a=1", topupOf("", good, 10_000)))
}

func TestExternalID(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.main
	one := set("X-EXTERNAL-ID", "77")
	if got := inquiry(c, one); got != "2003700" {
		t.Fatal(got)
	}
	w.kill()
	for name, answer := range map[string]object{
		"409 at the inquiry": c.post(inquiryAt, topupOf("", good, 10_000), one),
		"409 at a transfer":  c.post("/v1.0/emoney/topup", topupOf("R", good, 10_000), one),
	} {
		if code := text(answer, "responseCode"); code != "4093700" && code != "4093800" {
			t.Errorf("%s: %v", name, answer)
		}
	}
	if w.states("R") != "" {
		t.Error("money moved")
	}
	// Another account may use it, and a refused signature does not use one up.
	other := w.client(w.up.Connect("test", "other", "token", w.api.URL))
	if got := inquiry(other, one); got != "2003700" {
		t.Errorf("another account: %s", got)
	}
	if got := inquiry(c, set("X-EXTERNAL-ID", "78"), set("X-SIGNATURE", "x")); got != "4013700" {
		t.Error(got)
	}
	if got := inquiry(c, set("X-EXTERNAL-ID", "78")); got != "2003700" {
		t.Errorf("after a refused signature: %s", got)
	}
	// It is 10:00 in Jakarta: the next day begins in 14 hours.
	w.clock.Advance(14*time.Hour - time.Second)
	c.login()
	if got := inquiry(c, one); got != "4093700" {
		t.Errorf("late on the same day: %s", got)
	}
	w.clock.Advance(time.Second)
	if got := inquiry(c, one); got != "2003700" {
		t.Errorf("the next day: %s", got)
	}
	if got := inquiry(c, one); got != "4093700" {
		t.Errorf("again on the next day: %s", got)
	}
	if got := inquiry(c, set("X-EXTERNAL-ID", "78")); got != "2003700" {
		t.Errorf("another of yesterday: %s", got)
	}
}

// TestWaysToSign has accounts of each way; none accepts another's.
func TestWaysToSign(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		signature sandbox.Signature
		encoding  sandbox.Encoding
	}{{sandbox.Symmetric, sandbox.Base64}, {sandbox.Symmetric, sandbox.Hex}, {sandbox.Asymmetric, sandbox.Base64}} {
		w := open(t, func(o *sandbox.Options) { o.Signature, o.Encoding = way.signature, way.encoding })
		c := w.main
		if c.signature != string(way.signature) || way.signature == sandbox.Asymmetric && c.secret+c.encoding != "" {
			t.Errorf("%v: %+v", way, c)
		}
		if got := inquiry(c); got != "2003700" {
			t.Errorf("%v: %s", way, got)
		}
		c.want("4013800", c.post("/v1.0/emoney/topup", topupOf("R", good, 10_000), set("X-SIGNATURE", "bad")))
		if way.signature == sandbox.Asymmetric {
			continue
		}
		c.encoding = map[string]string{"base64": "hex", "hex": "base64"}[c.encoding]
		if got := inquiry(c); got != "4013700" {
			t.Errorf("%v in the other encoding: %s", way, got)
		}
	}
}

// TestMovedClock: an order to move the clock must not make every caller, whose
// clock nobody has moved, too late.
func TestMovedClock(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.movable = &kit.MovableClock{}
	w.kill()
	w.order(200, "clock", object{"advance": "48h"})
	if got := inquiry(w.main); got != "2003700" {
		t.Errorf("after the move: %s", got)
	}
	w.order(200, "clock", object{"advance": tokenAfter.String()})
	if got := inquiry(w.main); got != "4013701" {
		t.Errorf("tokens are to expire: %s", got)
	}
}
