package main

import (
	"fmt"

	"github.com/seed-f006e74d/gerbang/policy"
)

type policySchema struct{}

// Run prints the JSON Schema of the rules' input.
func (c *policySchema) Run(p *program) error {
	schema, err := policy.InputSchema()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.out, string(schema))
	return err
}
