package adminapi

import "github.com/seed-f006e74d/gerbang/tenants"

// The acts on pauses. What is of all merchants takes an administrator.
var (
	ListPauses = Endpoint[None, []tenants.Pause]{Act{Route: "GET /admin/pauses", Takes: Read, Text: "List what is paused, a thousand entries at most."}}
	SetPause   = Endpoint[tenants.Pause, Paused]{Act{Route: "POST /admin/pauses", Takes: PauseMerchant, Text: "Pause something, on every replica within a second."}}
	EndPause   = Endpoint[tenants.Pause, Paused]{Act{Route: "POST /admin/pauses/end", Takes: PauseMerchant, Text: "Let something go on."}}
)

// Paused is a pause after it began or ended, with the other pauses that hold the same thing, wider or narrower ones.
type Paused struct {
	tenants.Pause

	Still []tenants.Pause `json:"still_paused_by,omitempty"`
}
