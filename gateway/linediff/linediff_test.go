package linediff

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ a, b, want string }{
		{"", "", ""},
		{"a\n", "a\n", ""},
		{"", "a\nb\n", "@@ -1,0 +1,2 @@\n+a\n+b\n"},
		{"a\n", "", "@@ -1,1 +1,0 @@\n-a\n"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"},
		{"a\nb\nc\n", "b\nc\nd\n", "@@ -1,3 +1,3 @@\n-a\n b\n c\n+d\n"},
	} {
		if got := Of(c.a, c.b); got != c.want {
			t.Errorf("%q to %q:\n%swant\n%s", c.a, c.b, got, c.want)
		}
	}
	// Two changes far apart are two hunks.
	text := strings.Repeat("x\n", 20)
	if got := Of("a\n"+text+"b\n", "A\n"+text+"B\n"); strings.Count(got, "@@ -") != 2 || strings.Count(got, "\n x") > 6 {
		t.Errorf("two hunks:\n%s", got)
	}
	// What is too large to compare is replaced, and still whole.
	large := strings.Repeat("y\n", 5000)
	if got := Of("a\n"+large, strings.Repeat("z\n", 5000)); strings.Count(got, "\n-") != 5001 || strings.Count(got, "\n+") != 5000 {
		t.Errorf("a large one has %d and %d lines", strings.Count(got, "\n-"), strings.Count(got, "\n+"))
	}
}
