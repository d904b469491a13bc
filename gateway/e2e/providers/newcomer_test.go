package providers_test

import (
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// newcomer approves the second provider of payments: it
// takes nothing until the policy's route names it. Operators see that where they approve and list,
// and in an exception once a merchant has nobody else; afterwards it is paid through it.
func (x *pair) newcomer() {
	t, p, newcomer := x.t, x.p, x.of[second]
	t.Helper()
	reach := newcomer.Approved
	out, err := p.Run(t, "plugin", "approve", reach.Path, "--yes", "--untested", "--activate", "--port", reach.Ports[0], "--read", reach.Read[0])
	if err != nil || !strings.Contains(out, "next:") || !strings.Contains(out, "waits for route") {
		t.Errorf("approved: %v\n%s", err, out)
	}
	waits := func(want bool) {
		t.Helper()
		one, err := p.Plugin(t, second)
		if err != nil || one.WaitsForRoute != want {
			t.Errorf("it waits for a route: %t, %v", one.WaitsForRoute, err)
		}
		list, err := p.Run(t, "plugin", "list")
		if err != nil || strings.Contains(list, "waits for route") != want {
			t.Errorf("want %t:\n%s", want, list)
		}
	}
	waits(true)
	made := p.NewMerchant(t)
	newcomer.Connect(t, p, made.MerchantID)
	s := harness.Shop{Program: p, MerchantID: made.MerchantID, Key: made.LiveKey}
	if a := s.Ask(t, "/payments/create", s.PaymentBody(harness.Fields{"amount": 70001})); a.Code != fault.ProviderUnavailable || !strings.Contains(a.Message, "takes nothing yet") {
		t.Errorf("before the route: %s", a)
	}
	p.AwaitException(t, harness.ReadyWithin, movement.ReasonAccount, "connection to "+second, "takes nothing until the route of the policy names "+second)
	x.order(first, second)
	waits(false)
	body := s.PaymentBody(harness.Fields{"amount": 70002})
	if a := s.Ask(t, "/payments/create", body); !a.Success {
		t.Errorf("with the route: %s", a)
	}
	found, err := adminapi.Find.Call(t.Context(), p.Admin(), adminapi.Search{ID: body["external_id"].(string)})
	if err != nil || len(found.Movements) != 1 || found.Movements[0].Provider != second {
		t.Errorf("found %+v", found.Movements)
	}
}
