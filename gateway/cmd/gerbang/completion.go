package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// scripts have a shell ask this program for what may come next. Each line of the answer is a word, a tab and what it means;
// one line :files has the shell complete names of files.
var scripts = map[string]string{
	"bash": `_gerbang() {
  local word="${COMP_WORDS[COMP_CWORD]}" line
  [[ $word == = ]] && word=
  COMPREPLY=()
  while IFS= read -r line; do COMPREPLY+=("${line%%$'\t'*}"); done < <(gerbang complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  [[ ${COMPREPLY[0]} == :files ]] || return
  COMPREPLY=()
  compopt -o filenames 2>/dev/null
  while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$word")
}
complete -F _gerbang gerbang
`,
	"zsh": `#compdef gerbang
_gerbang() {
  local -a lines words_
  lines=("${(@f)$(gerbang complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  compset -P '--*='
  if [[ $lines[1] == :files ]]; then
    _files
  else
    words_=("${(@)lines//:/\\:}")
    words_=("${(@)words_/$'\t'/:}")
    _describe gerbang words_
  fi
}
compdef _gerbang gerbang
`,
	"fish": `function __gerbang
  set -l words (commandline -opc) (commandline -ct)
  set -l lines (gerbang complete -- $words[2..] 2>/dev/null)
  set -l flag (string match -r '^--[^=]*=' -- (commandline -ct))
  if test "$lines[1]" = :files
    set lines (__fish_complete_path (string replace -r '^--[^=]*=' '' -- (commandline -ct)))
  end
  printf '%s\n' "$flag"$lines
end
complete -c gerbang -f -a '(__gerbang)'
`,
}

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints the script.
func (c *completionCommand) Run(p *program) error {
	if p.json {
		return p.show(map[string]string{"shell": c.Shell, "script": scripts[c.Shell]})
	}
	_, err := fmt.Fprint(p.out, scripts[c.Shell])
	return err
}

type completeCommand struct {
	Words []string `arg:"" optional:"" help:"The words after gerbang; the last is being typed, and may be empty."`
}

const completeFiles = ":files"

// Run prints what may stand in place of the last word.
func (c *completeCommand) Run(ctx context.Context, p *program) error {
	parser, err := p.parser(ctx, &commands{})
	if err != nil {
		return err
	}
	for _, line := range completed(parser.Model.Node, c.Words) {
		if _, err := fmt.Fprintln(p.out, line); err != nil {
			return err
		}
	}
	return nil
}

// completed are the lines of what may stand in place of the last word.
func completed(node *kong.Node, words []string) []string {
	words = joined(words)
	if len(words) == 0 {
		words = []string{""}
	}
	before, last := words[:len(words)-1], words[len(words)-1]
	var waits *kong.Value // a flag whose value comes next
	positional := 0
	for _, word := range before {
		name, _, given := strings.Cut(word, "=")
		child := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word })
		switch {
		case waits != nil:
			waits = nil
		case strings.HasPrefix(word, "-"):
			if f := flagOf(node, name); f != nil && !f.IsBool() && !given {
				waits = f.Value
			}
		case child >= 0:
			node, positional = node.Children[child], 0
		default:
			positional++
		}
	}
	if name, value, given := strings.Cut(last, "="); waits == nil && given && strings.HasPrefix(last, "--") {
		f := flagOf(node, name)
		if f == nil {
			return nil
		}
		return valuesOf(f.Value, value)
	}
	switch {
	case waits != nil:
		return valuesOf(waits, last)
	case strings.HasPrefix(last, "-"):
		return flagLines(node, last, before)
	case len(node.Children) > 0:
		var lines []string
		for _, child := range node.Children {
			if !child.Hidden && strings.HasPrefix(child.Name, last) {
				lines = append(lines, child.Name+"\t"+child.Help)
			}
		}
		return lines
	case len(node.Positional) > 0:
		at := node.Positional[min(positional, len(node.Positional)-1)]
		if positional < len(node.Positional) || at.IsCumulative() {
			return valuesOf(at, last)
		}
	}
	return nil
}

// joined has --flag=value as one word again, of which bash makes three.
func joined(words []string) []string {
	var out []string
	for i, word := range words {
		switch before := len(out) - 1; {
		case i > 0 && word == "=" && strings.HasPrefix(out[before], "--"), i > 1 && words[i-1] == "=" && strings.HasSuffix(out[before], "="):
			out[before] += word
		default:
			out = append(out, word)
		}
	}
	return out
}

// flagOf is a flag of a command or of those above it.
func flagOf(node *kong.Node, name string) *kong.Flag {
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			if "--"+f.Name == name || f.Short != 0 && "-"+string(f.Short) == name {
				return f
			}
		}
	}
	return nil
}

func flagLines(node *kong.Node, last string, before []string) []string {
	var lines []string
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			name := "--" + f.Name
			said := slices.ContainsFunc(before, func(word string) bool { return word == name || strings.HasPrefix(word, name+"=") })
			if strings.HasPrefix(name, last) && (!said || f.IsCumulative()) {
				lines = append(lines, name+"\t"+f.Help)
			}
		}
	}
	return lines
}

// valuesOf are the values that a flag or an argument may have, where they are words of its own or names of files.
func valuesOf(v *kong.Value, last string) []string {
	if v.Enum == "" && namesFile(v) {
		return []string{completeFiles}
	}
	var lines []string
	for _, word := range v.EnumSlice() {
		if word != "" && strings.HasPrefix(word, last) {
			lines = append(lines, word)
		}
	}
	return lines
}

// namesFile tells whether a value is a file or a directory, by its type or by how it is called.
func namesFile(v *kong.Value) bool {
	name := v.Name
	if v.Flag != nil {
		name = v.Flag.PlaceHolder
	}
	switch v.Tag.Type {
	case "path", "existingpath", "existingfile", "existingdir":
		return true
	}
	return slices.Contains([]string{"file", "files", "dir", "candidate", "credentials"}, strings.ToLower(name))
}
