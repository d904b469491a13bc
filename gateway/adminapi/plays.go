package adminapi

import "github.com/seed-f006e74d/gerbang/sdk/money"

// NewPlay has something happen to a test movement at its provider's simulator: pay, pay-late,
// pay-lost, fail, notify, delay, drop, refund or chargeback.
type NewPlay struct {
	Movement string       `path:"movement" json:"-"` // the movement's id
	Play     string       `json:"play"`
	Amount   money.Amount `json:"amount,omitempty"` // all of it unless given
}

// PlayMovement has something happen to a test movement.
var PlayMovement = Endpoint[NewPlay, None]{Act{
	Route: "POST /admin/movements/{movement}/play", Takes: SendCallbacks, Text: "Have a payer or a provider do something to a test movement, at its provider's simulator.",
}}
