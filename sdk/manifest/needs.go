package manifest

import (
	"encoding/json"
	"fmt"
	"strconv"

	jsonx "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Interface numbers what plugins and gateways say to each other: the wire, the manifest's
// members and values, and the contracts. It is one higher whenever any of them grows.
// A build's version would not do: it tells nothing of a gateway that was built from a
// checkout, and most releases change nothing here.
const Interface = 5

// format is the form of manifests that this version reads.
const format = 1

// newerThanThis says why a manifest is for newer gateways. It comes before the strict
// reading, whose faults would be about what nobody can mend but by a newer gateway.
func newerThanThis(document []byte) (name string, why *Fault) {
	var head struct {
		Format jsontext.Value `json:"manifest"`
		Needs  jsontext.Value `json:"needs"`
		Name   jsontext.Value `json:"name"`
	}
	if err := jsonx.Unmarshal(document, &head); err != nil {
		return "", nil
	}
	_ = json.Unmarshal(head.Name, &name)
	switch needs, reads := number(head.Needs), number(head.Format); {
	case needs > Interface:
		return name, &Fault{"/needs", fmt.Sprintf("needs gateway >= %s, this is %d (gerbang version prints its interface): run a newer gateway", plain(needs), Interface)}
	case reads > format:
		return name, &Fault{"/manifest", fmt.Sprintf("is %s, this gateway reads %d: run a newer gateway", plain(reads), format)}
	}
	return name, nil
}

// number is a JSON number, 0 for anything else.
func number(text jsontext.Value) (n float64) {
	_ = json.Unmarshal(text, &n)
	return n
}

func plain(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }
