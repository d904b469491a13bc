package sdk

import (
	"math"
	"testing"
	"time"
)

func TestResults(t *testing.T) {
	t.Parallel()
	end := time.Unix(9, 0)
	accepted := Accepted("p", end, map[string]int{"a": 1})
	if accepted.Outcome != Pending || accepted.ProviderReference != "p" || !accepted.ExpiresAt.Equal(end) || string(accepted.Data) != `{"a":1}` {
		t.Errorf("got %+v", accepted)
	}
	if r := Finished("p", nil); r.Outcome != Done || r.ProviderReference != "p" || string(r.Data) != "null" {
		t.Errorf("got %+v", r)
	}
	if r := Refuse(RefuseProduct, "gone", FieldFault{"sku", "is gone"}); r.Outcome != Refused || r.Refusal.Code != RefuseProduct ||
		r.Refusal.Message != "gone" || len(r.Refusal.Fields) != 1 {
		t.Errorf("got %+v", r)
	}
	if r := DidNotSend(BlameAccount, "d"); r.Outcome != NotSent || r.Blame != BlameAccount || r.Detail != "d" {
		t.Errorf("got %+v", r)
	}
	if r := DontKnow(BlameUpstream, "d"); r.Outcome != Unknown || r.Blame != BlameUpstream || r.Detail != "d" {
		t.Errorf("got %+v", r)
	}
	if f := NoStatus(BlameUpstream, "d"); f.Status != StatusUnknown || f.Blame != BlameUpstream || f.Detail != "d" {
		t.Errorf("got %+v", f)
	}
}

// TestUnencodableData: the call happened, so the outcome must not say that it did
// not; and without its data it must not say that it did.
func TestUnencodableData(t *testing.T) {
	t.Parallel()
	for _, r := range []Result{Accepted("p", time.Time{}, math.NaN()), Finished("p", make(chan int))} {
		if r.Outcome != Unknown || r.Detail == "" {
			t.Errorf("got %+v", r)
		}
	}
}
