package sdk

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/pluginpb"
)

func isKnown[E ~int32](value E, names map[int32]string) bool {
	_, ok := names[int32(value)]
	return ok
}

func known[E ~int32](value E, names map[int32]string) int {
	if !isKnown(value, names) {
		return 0
	}
	return int(value)
}

// detailOf tells operators of a number that this version does not know, before what the
// plugin says itself.
func detailOf[E ~int32](what string, value E, names map[int32]string, said string) string {
	if isKnown(value, names) {
		return said
	}
	return strings.TrimSpace(strange(what, value) + ". " + said)
}

func strange[E ~int32](what string, value E) string {
	return fmt.Sprintf("the plugin says %s %d, which gateways of interface %d don't know: it is for a newer gateway", what, value, manifest.Interface)
}

// readable refuses a verified notification with a status that this version does not know:
// the upstream sends it again until a newer gateway reads it. Once acknowledged it would
// be lost, and a lookup need not tell what it told.
func readable(n *pluginpb.NotifyResponse) error {
	if n.GetStatus() >= http.StatusBadRequest {
		return nil // nothing of it is used
	}
	for _, u := range n.GetUpdates() {
		if !isKnown(u.GetStatus(), pluginpb.Status_name) {
			return errors.New(strange("status", u.GetStatus()))
		}
	}
	return nil
}
