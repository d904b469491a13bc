package sdk

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f006e74d/gerbang/sdk/pluginpb"
)

// TestLogNamesTheRequest: a handler's lines, and those about its panic, have the request's id.
func TestLogNamesTheRequest(t *testing.T) {
	t.Parallel()
	handlers := rightHandlers()
	handlers.Calls["/shop/pay"] = func(ctx context.Context, c Call) Result {
		Log(ctx).Info("asked", "reference", c.Reference)
		if c.Reference == "panics" {
			panic("at the disco")
		}
		return Result{}
	}
	s, err := newServer([]byte(payManifest), handlers)
	if err != nil {
		t.Fatal(err)
	}
	var lines, own bytes.Buffer
	s.lines, s.log = slog.New(slog.NewJSONHandler(&lines, nil)), hclog.New(&hclog.LoggerOptions{Output: &own, JSONFormat: true})
	for _, reference := range []string{"r", "panics"} {
		if _, err := s.Call(t.Context(), &pluginpb.CallRequest{Operation: "/shop/pay", RequestId: "req-" + reference, Reference: reference}); err != nil {
			t.Fatal(err)
		}
	}
	if got := lines.String(); strings.Count(got, `"request_id":"req-r"`) != 1 || strings.Count(got, `"request_id":"req-panics"`) != 1 {
		t.Errorf("the handler's lines: %s", got)
	}
	if got := own.String(); !strings.Contains(got, `"request_id":"req-panics"`) {
		t.Errorf("the panic's line: %s", got)
	}
	Log(t.Context()).Debug("without a request there is a log, too")
}
