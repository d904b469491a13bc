package sdk

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func verifying(t *testing.T, verify func(context.Context, Connection) Result) *Client {
	t.Helper()
	return dial(t, &server{handlers: Handlers{Verify: verify}, log: hclog.NewNullLogger()})
}

// TestVerifyOverTheWire also holds that a handler gets the connection whole.
func TestVerifyOverTheWire(t *testing.T) {
	t.Parallel()
	asked := Connection{MerchantID: "m", Mode: "test", Credentials: json.RawMessage(`{"key":"k"}`)}
	var got Connection
	answer := Usable("Toko Contoh")
	c := verifying(t, func(_ context.Context, c Connection) Result { got = c; return answer })
	if r, err := c.Verify(t.Context(), asked); err != nil || r.Outcome != Done || r.ProviderReference != "Toko Contoh" {
		t.Errorf("usable: %+v, %v", r, err)
	}
	if got.MerchantID != "m" || got.Mode != "test" || got.Version != 0 || string(got.Credentials) != `{"key":"k"}` {
		t.Errorf("the handler got %+v", got)
	}
	answer = Refuse(RefuseOther, "The key is unknown.")
	if r, err := c.Verify(t.Context(), asked); err != nil || r.Outcome != Refused || r.Refusal.Message != "The key is unknown." {
		t.Errorf("refused: %+v, %v", r, err)
	}
	answer = DidNotSend(BlameAccount, "401")
	if r, err := c.Verify(t.Context(), asked); err != nil || r.Outcome != NotSent || r.Blame != BlameAccount || r.Detail != "401" {
		t.Errorf("not sent: %+v, %v", r, err)
	}
}

// TestAVerifyThatPanicsKnowsNothing and leaves the process alone.
func TestAVerifyThatPanicsKnowsNothing(t *testing.T) {
	t.Parallel()
	c := verifying(t, func(context.Context, Connection) Result { panic("k-secret") })
	if r, err := c.Verify(t.Context(), Connection{}); err != nil || r.Outcome != Unknown {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := c.Lookup(t.Context(), Lookup{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("the process is gone: %v", err)
	}
}
