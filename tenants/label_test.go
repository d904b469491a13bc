package tenants_test

import (
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/tenants"
)

func TestLabelsThatTheGatewayReads(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]map[string]bool{
		tenants.LabelColour:   {"#0a5": true, "#7A1fa2": true, "0a5": false, "#0a55": false, "": false, "red": false, "#0a5\n": false},
		tenants.LabelLanguage: {"id": true, "en": true, "EN": false, "": false, "fr": false},
		tenants.LabelReceipts: {"payments": true, "": false, "yes": false},
		"risk":                {"": true, "anything": true},
	} {
		for value, good := range values {
			err := tenants.CheckLabels(map[string]string{name: value})
			if (err == nil) != good || err != nil && !strings.HasPrefix(err.Error(), name+" must be ") {
				t.Errorf("%s=%q: %v", name, value, err)
			}
		}
	}
	if err := tenants.CheckLabels(nil); err != nil {
		t.Error(err)
	}
}
