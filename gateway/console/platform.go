package console

import "github.com/seed-f006e74d/gerbang/gateway/fault"

// ofPlatform are the routes of a merchant that platform has, too: its row is
// what the platform's own connections hang on, and no merchant.
var ofPlatform = map[string]bool{
	"GET /admin/merchants/{merchant}":                                true,
	"GET /admin/merchants/{merchant}/audit":                          true,
	"GET /admin/merchants/{merchant}/balance":                        true,
	"PUT /admin/merchants/{merchant}/connections/{provider}":         true,
	"POST /admin/merchants/{merchant}/connections/{provider}/remove": true,
}

func platformRefused() error {
	return fault.New(fault.InvalidRequest,
		"platform is no merchant: it has connections, a balance and an audit, but no keys, callbacks, tier, status or credit.")
}
