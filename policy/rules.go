package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Rule is a rule of a set and where it stands.
type Rule struct {
	// Number counts a set's rules from 1, in the order of file, line and column. A set never changes, so version and number
	// name a rule for good; 0 is none.
	Number int
	// Name is the document that the rule answers, such as gerbang.refusals. Many rules may answer one.
	Name string
	File string
	Line int
	// Says is the reason that the rule gives to every request that it refuses, "" where it is computed.
	Says string
	// end is the rule's last line.
	end int
}

// ruleTable is the rules of a set, tests left out.
type ruleTable struct {
	rules  []Rule
	number map[*ast.Rule]int
}

// newRuleTable numbers the rules of compiled modules. An else is a rule of its own.
func newRuleTable(modules map[string]*ast.Module) ruleTable {
	var all []*ast.Rule
	for _, module := range modules {
		for _, rule := range module.Rules {
			for ; rule != nil; rule = rule.Else {
				if rule.Location != nil {
					all = append(all, rule)
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *ast.Rule) int {
		return cmp.Or(cmp.Compare(a.Location.File, b.Location.File), cmp.Compare(a.Location.Row, b.Location.Row),
			cmp.Compare(a.Location.Col, b.Location.Col))
	})
	table := ruleTable{number: make(map[*ast.Rule]int, len(all))}
	for i, rule := range all {
		table.number[rule] = i + 1
		table.rules = append(table.rules, Rule{
			Number: i + 1, Name: strings.TrimPrefix(rule.Ref().GroundPrefix().String(), "data."),
			File: rule.Location.File, Line: rule.Location.Row, Says: saysOf(rule),
			end: rule.Location.Row + strings.Count(strings.TrimRight(string(rule.Location.Text), "\n"), "\n"),
		})
	}
	return table
}

// saysOf is the text that a rule adds to a set.
func saysOf(rule *ast.Rule) string {
	if rule.Head.Key == nil {
		return ""
	}
	text, _ := rule.Head.Key.Value.(ast.String)
	return string(text)
}

// of is a rule of the table, or the zero value.
func (t ruleTable) of(rule *ast.Rule) Rule {
	if n := t.number[rule]; n > 0 {
		return t.rules[n-1]
	}
	return Rule{}
}

// at is the innermost rule that a line belongs to, or the zero value.
func (t ruleTable) at(file string, line int) Rule {
	var found Rule
	for _, rule := range t.rules {
		if rule.File == file && rule.Line <= line && line <= rule.end {
			found = rule
		}
	}
	return found
}

// Rules are the set's rules in the order of their numbers, tests left out.
func (s *Set) Rules() []Rule { return slices.Clone(s.table.rules) }

// Rule is the rule of a number, or the zero value.
func (s *Set) Rule(number int) Rule {
	if number < 1 || number > len(s.table.rules) {
		return Rule{}
	}
	return s.table.rules[number-1]
}
