package version

import (
	"regexp"
	"testing"
)

func TestString(t *testing.T) {
	t.Parallel()
	for b, want := range map[Build]string{
		{Version: "1.2.3", Revision: "0123456789abcdef"}:           "1.2.3",
		{Version: "1.2.3-dev", Revision: "0123456789abcdef"}:       "1.2.3-dev+0123456789ab",
		{Version: "1.2.3-dev", Revision: "0123456789abcdef-dirty"}: "1.2.3-dev+0123456789ab.dirty",
		{Version: "1.2.3-dev"}:                                     "1.2.3-dev",
	} {
		if got := b.String(); got != want {
			t.Errorf("%+v is %q, want %q", b, got, want)
		}
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(Number()) || Of().Version != Number()+"-dev" {
		t.Errorf("the number is %q, the version of a test %q", Number(), Of().Version)
	}
}

func TestReleases(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{Number(): true} // what is made next
	for _, r := range Releases() {
		if seen[r.Version] || len(r.Commit) != 40 || len(r.Migrations) != 16 {
			t.Errorf("the release %+v", r)
		}
		seen[r.Version] = true
	}
}
