package rollout

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/linediff"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
)

// Editor is who makes the versions of a directory that is followed in development.
const Editor = "policy-dir"

// Overtaken says that another version has come into force than the one that an edit began from: with the edit in force, what
// that one changed would be gone.
type Overtaken struct {
	Head   policy.Version // in force
	Author string         // of it
	Diff   string         // what it changed, as diff -u writes it
}

// Error tells what it changed.
func (o *Overtaken) Error() string {
	return fmt.Sprintf("version %s of %s is in force, which this edit does not begin from. It changed:\n%s", Short(o.Head), o.Author, o.Diff)
}

// overtaken is an *Overtaken where an edit does not begin from the version in force. Where nobody says what it begins from it
// is believed to know what its own operator, or the first start, has put there, and what is edited beside a gateway in development.
func (p *Publisher) overtaken(ctx context.Context, head, began policy.Version, operator string) error {
	if began == head {
		return nil
	}
	there, err := p.Record.PolicyVersion(ctx, head)
	if err != nil {
		return err
	}
	switch {
	case began != "":
	case slices.Contains([]string{operator, firstAuthor, Editor}, there.Author):
		return nil
	default:
		began = there.Predecessor
	}
	o := &Overtaken{Head: head, Author: there.Author}
	was, err := p.Record.PolicyVersion(ctx, began)
	if err != nil { // it is not kept any more
		o.Diff = "(version " + Short(began) + ", which it is to be compared with, can't be read)"
		return o
	}
	o.Diff = Difference(was, there)
	return o
}

// Difference is how a version becomes another one, as diff -u writes it.
func Difference(a, b store.PolicyVersion) string {
	names := maps.Clone(a.Source)
	maps.Copy(names, b.Source)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if diff := linediff.Of(string(a.Source[name]), string(b.Source[name])); diff != "" {
			fmt.Fprintf(&text, "--- %s/%s\n+++ %s/%s\n%s", Short(a.Version), name, Short(b.Version), name, diff)
		}
	}
	return text.String()
}
