package lifecycle_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
)

// An object reads as a parser reads what was set, whatever the texts hold, and has no
// spaces.
func TestObject(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, number, truth := rapid.String().Draw(t, "text"), rapid.Int64().Draw(t, "number"), rapid.Bool().Draw(t, "truth")
		at := time.Unix(rapid.Int64Range(0, 4_000_000_000).Draw(t, "at"), 999).In(time.FixedZone("WIB", 7*60*60))
		inner := (&lifecycle.Object{}).SetText(text, text).JSON()
		object := (&lifecycle.Object{}).SetText("text", text).SetNumber("number", number).SetTime("at", at).SetTime("never", time.Time{}).
			SetJSON("inner", inner).Set("truth", &truth).Set("nothing", (*string)(nil)).JSON()
		var got struct {
			Text    string
			Number  int64
			At      string
			Never   *string
			Inner   map[string]string
			Truth   *bool
			Nothing any
		}
		decoder := json.NewDecoder(bytes.NewReader(object))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&got); err != nil {
			t.Fatalf("%s: %v", object, err)
		}
		if got.Text != text || got.Number != number || got.At != lifecycle.Stamp(at) || got.Never != nil || got.Inner[text] != text || *got.Truth != truth || got.Nothing != nil {
			t.Fatalf("%s reads as %+v", object, got)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, object); err != nil || !bytes.Equal(compact.Bytes(), object) {
			t.Fatalf("%s is not compact: %v", object, err)
		}
	})
	if empty := (&lifecycle.Object{}).JSON(); string(empty) != "{}" {
		t.Errorf("an empty object is %s", empty)
	}
}
