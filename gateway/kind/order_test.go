package kind

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// TestAmountThatCannotBeChosen: a quote that leaves the amount to the caller is of
// no use where a request has none.
func TestAmountThatCannotBeChosen(t *testing.T) {
	t.Parallel()
	err := agreed(&catalog.Operation{}, catalog.Document{"qty": json.Number("50000")}, sdk.Quoted{Outcome: sdk.Done, Price: 52_500, Fee: 2_500, Open: true}, 53_000)
	if got, ok := errors.AsType[*fault.Error](err); !ok || got.Code != fault.ProviderUnavailable {
		t.Errorf("got %v", err)
	}
}
