package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// confirmed is embedded by commands of which nothing can be undone.
type confirmed struct {
	Yes bool `help:"Do it without asking; a program must say so."`
}

// confirm asks a person whether to go on. A program, which nobody can ask, must have said
// --yes.
func (c *confirmed) confirm(p *program, what string) error {
	return p.confirm(c.Yes, what, "yes")
}

// confirm asks a person at the terminal for a word, unless yes.
func (p *program) confirm(yes bool, what, word string) error {
	if yes {
		return nil
	}
	nobody := usage(errors.New(what + ". This can't be undone: give --yes, since nobody is at a terminal to be asked"))
	if !p.inTerminal {
		return nobody
	}
	_, _ = fmt.Fprintf(p.err, "%s. This can't be undone. Type %s to go on: ", what, word)
	var typed string
	if _, err := fmt.Fscanln(p.in, &typed); errors.Is(err, io.EOF) { // /dev/null is a device, too
		_, _ = fmt.Fprintln(p.err)
		return nobody
	}
	if !strings.EqualFold(typed, word) {
		return errors.New("nothing was done")
	}
	return nil
}
