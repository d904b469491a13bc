package operators

import (
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page/pagetest"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

func TestEveryTextIsThereInIndonesian(t *testing.T) {
	t.Parallel()
	var given []string
	for _, p := range pages {
		given = append(given, p.text)
	}
	for _, s := range secretsOf(created) {
		given = append(given, s.Text)
	}
	for _, d := range documentsOf(movementOf) {
		given = append(given, d.Title)
	}
	for _, sort := range []movement.ReturnSort{movement.Refund, movement.Void, movement.Chargeback, movement.Reversal} {
		given = append(given, string(sort))
	}
	given = append(given, linkOf("").Text, tokenOf("").Text, adminapi.PlaceMerchant, adminapi.PlaceKey, adminapi.PlaceCallback,
		adminapi.PlaceAdjustment, adminapi.PlacePolicy, adminapi.PlaceActivation, adminapi.PlaceReplica)
	pagetest.Words(t, given...)
}
