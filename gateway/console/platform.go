package console

import "github.com/seed-f006e74d/gerbang/gateway/fault"

func platformRefused() error {
	return fault.New(fault.InvalidRequest,
		"platform is no merchant: it has connections, a balance and an audit, but no keys, callbacks, tier, status or credit.")
}
