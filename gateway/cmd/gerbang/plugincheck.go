package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

type pluginCheck struct {
	File     string `arg:"" type:"existingfile" name:"manifest" help:"The manifest, as JSON."`
	Expanded bool   `help:"Print the whole manifest, completed by the contract that it implements."`
}

// Run judges a manifest as the gateway does, and starts no plugin.
func (c *pluginCheck) Run(p *program) error {
	document, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	m, err := manifest.Parse(document)
	if err == nil {
		_, err = catalog.Build([]*manifest.Manifest{m})
	}
	if err != nil {
		return c.refuse(p, err)
	}
	if c.Expanded {
		_, err := fmt.Fprintf(p.out, "%s\n", m.Document())
		return err
	}
	implements := m.Implements
	if implements == "" {
		implements = "no contract"
	}
	report := struct {
		Name       string `json:"name"`
		Version    string `json:"version"`
		Implements string `json:"implements,omitempty"`
		Operations int    `json:"operations"`
		Digest     string `json:"manifest_digest"`
	}{m.Name, m.Version, m.Implements, len(m.Operations), m.Digest()}
	return p.show(report,
		[]string{"name:", m.Name}, []string{"version:", m.Version}, []string{"implements:", implements},
		[]string{"operations:", strconv.Itoa(len(m.Operations))}, []string{"manifest_digest:", m.Digest()})
}

// refuse prints every fault with its place.
func (c *pluginCheck) refuse(p *program, err error) error {
	faults, ok := errors.AsType[manifest.Faults](err)
	if !ok {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	rows := make([][]string, len(faults))
	for i, f := range faults {
		rows[i] = []string{c.File + "#" + f.String()}
	}
	if err := p.show(faults, rows...); err != nil {
		return err
	}
	return fmt.Errorf("%s has %d faults", c.File, len(faults))
}
