package decision

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/policy"
)

// inputDocument is an input as it is sealed and stored.
type inputDocument struct {
	ID      string         `json:"id"`
	At      int64          `json:"at"` // microseconds
	Who     string         `json:"merchant"`
	Path    string         `json:"operation"`
	Version string         `json:"version"`
	Record  int64          `json:"record"`
	Live    bool           `json:"live,omitempty"`
	Rule    Rule           `json:"rule"`
	Outcome Outcome        `json:"outcome,omitempty"`
	Amount  *int64         `json:"amount,omitempty"`
	Fields  map[string]any `json:"fields,omitempty"`
	Quote   map[string]any `json:"quote,omitempty"`
	About   policy.Parties `json:"about,omitzero"`
	Lists   []string       `json:"lists,omitempty"`
	To      string         `json:"destination,omitempty"`
	Unused  bool           `json:"unused,omitempty"`
	Bare    bool           `json:"bare,omitempty"` // of a replica of the version before: a request that failed otherwise
}

// PackInputs writes inputs for sealing.
func PackInputs(inputs []Input) ([]byte, error) {
	documents := make([]inputDocument, len(inputs))
	for i, in := range inputs {
		documents[i] = inputDocument{
			ID: in.ID.String(), At: in.At.UnixMicro(), Who: in.Merchant, Path: in.Operation, Version: in.Version, Record: in.Record,
			Live: in.Live, Rule: in.Rule, Outcome: in.Outcome, Amount: in.Amount, Fields: in.Fields, Quote: in.Quote, About: in.Parties, Lists: in.Lists, To: in.Limit, Unused: in.Unused,
		}
	}
	return json.Marshal(documents)
}

// UnpackInputs reads what PackInputs wrote. Numbers are json.Number, as in a request.
func UnpackInputs(packed []byte) ([]Input, error) {
	decoder := json.NewDecoder(bytes.NewReader(packed))
	decoder.UseNumber()
	var documents []inputDocument
	if err := decoder.Decode(&documents); err != nil {
		return nil, fmt.Errorf("decision: inputs: %w", err)
	}
	inputs := make([]Input, 0, len(documents))
	for _, d := range documents {
		if d.Bare {
			continue
		}
		id, err := parseID(d.ID)
		if err != nil {
			return nil, fmt.Errorf("decision: inputs: %w", err)
		}
		inputs = append(inputs, Input{
			ID: id, At: time.UnixMicro(d.At).UTC(), Amount: d.Amount, Fields: d.Fields, Quote: d.Quote, Parties: d.About, Lists: d.Lists, Limit: d.To, Unused: d.Unused,
			Series: Series{Merchant: d.Who, Operation: d.Path, Version: d.Version, Record: d.Record, Live: d.Live, Rule: d.Rule, Outcome: d.Outcome},
		})
	}
	return inputs, nil
}
