package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestRunbookCommands reads each command line of the runbooks as the program does.
func TestRunbookCommands(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../deploy/RUNBOOKS.md")
	if err != nil {
		t.Fatal(err)
	}
	word := regexp.MustCompile(`"[^"]*"|\S+`)
	read := 0
	for _, found := range regexp.MustCompile("(?m)^gerbang (.*)$|`gerbang ([^`]*)`").FindAllStringSubmatch(string(text), -1) {
		line, _, _ := strings.Cut(found[1]+found[2], " # ")
		var args []string
		for _, arg := range word.FindAllString(line, -1) {
			args = append(args, strings.Trim(arg, `"`))
		}
		parser, err := (&program{}).parser(t.Context(), &commands{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(args); err != nil {
			t.Errorf("gerbang %s: %v", line, err)
		}
		read++
	}
	if read < 50 {
		t.Errorf("there are %d command lines", read)
	}
}
