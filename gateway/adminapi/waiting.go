package adminapi

import (
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Waiting is all that waits for a person, each list the newest first and at most a thousand.
type Waiting struct {
	Overrides   []WaitingOverride   `json:"overrides"`   // for another operator, who says the same
	Assignments []WaitingAssignment `json:"assignments"` // for another operator, who says the same
	Refunds     []WaitingRefund     `json:"refunds"`     // for another operator, who says the same
	Adjustments []Adjustment        `json:"adjustments"` // for another operator, who approves or rejects
	Activations []PolicyActivation  `json:"activations"` // for another operator, who activates the same version
	Approvals   []PluginApproval    `json:"approvals"`   // for another operator, who confirms
	Exceptions  []Exception         `json:"exceptions"`  // for anybody who resolves them
}

// WaitingOverride is what one operator says of an open movement.
type WaitingOverride struct {
	ID         string            `json:"id"` // the movement's
	MerchantID string            `json:"merchant_id"`
	Mode       string            `json:"mode"`
	Kind       string            `json:"kind"`
	Reference  string            `json:"reference"`
	Provider   string            `json:"provider"`
	Amount     money.Amount      `json:"amount"`
	State      string            `json:"state"`
	Override   movement.Override `json:"override"`
}

// WaitingAssignment is a statement line that one operator wants to give to a collection.
type WaitingAssignment struct {
	Movement   string       `json:"movement"`
	Payment    string       `json:"payment"`
	MerchantID string       `json:"merchant_id"`
	Mode       string       `json:"mode"`
	Amount     money.Amount `json:"amount"`
	Operator   string       `json:"operator"`
	Reason     string       `json:"reason"`
	At         time.Time    `json:"at"`
}

// ListWaiting lists all that waits for a person.
var ListWaiting = Endpoint[None, Waiting]{Act{Route: "GET /admin/waiting", Takes: Read, Text: "List all that waits for a person."}}
