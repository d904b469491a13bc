package main

import (
	"strings"
	"testing"
)

// TestShownTextSteersNoTerminal: much of it comes from merchants and their requests.
func TestShownTextSteersNoTerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &program{out: &out}
	if err := p.show(nil, []string{"asked", "a\x1b[31m\u009b31mb\x07"}, []string{"from", "-"}); err != nil || out.String() != "asked  a[31m31mb\nfrom   -\n" {
		t.Errorf("printed %q; %v", out.String(), err)
	}
}
