package edge_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// TestAnswersAreNotedAsDelivered: of an answer with a receipt the engine hears once
// it was written, also of a refusal, and not where the caller had hung up.
func TestAnswersAreNotedAsDelivered(t *testing.T) {
	t.Parallel()
	receipt := movement.NewID()
	for name, c := range map[string]struct {
		answer lifecycle.Answer
		err    error
		gone   bool
		closes bool // as soon as it has read the answer
		want   []movement.ID
	}{
		"an answer":              {answer: lifecycle.Answer{Data: 1, Receipt: receipt}, want: []movement.ID{receipt}},
		"a refusal":              {answer: lifecycle.Answer{Receipt: receipt}, err: fault.New(fault.ProviderRejected, "No."), want: []movement.ID{receipt}},
		"an answer to nobody":    {answer: lifecycle.Answer{Data: 1, Receipt: receipt}, gone: true},
		"a caller that closes":   {answer: lifecycle.Answer{Data: 1, Receipt: receipt}, closes: true, want: []movement.ID{receipt}},
		"a refusal, and a close": {answer: lifecycle.Answer{Receipt: receipt}, err: fault.New(fault.ProviderRejected, "No."), closes: true, want: []movement.ID{receipt}},
		"one without a receipt":  {answer: lifecycle.Answer{Data: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := build(t)
			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			h.run = func(lifecycle.Request) (lifecycle.Answer, error) {
				if c.gone {
					hangUp()
				}
				return c.answer, c.err
			}
			request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/payments/create", strings.NewReader(h.right("")))
			to := reader{ResponseRecorder: httptest.NewRecorder(), read: func() {}}
			if c.closes {
				to.read = hangUp
			}
			h.ServeHTTP(to, request)
			if !slices.Equal(h.delivered, c.want) {
				t.Errorf("delivered %v, want %v", h.delivered, c.want)
			}
		})
	}
}

// reader is a caller, with what it does when it has read an answer.
type reader struct {
	*httptest.ResponseRecorder
	read func()
}

func (r reader) Write(data []byte) (int, error) {
	defer r.read()
	return r.ResponseRecorder.Write(data)
}
