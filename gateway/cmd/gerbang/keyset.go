package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/seed-f006e74d/gerbang/tenants"
)

type keysetCommands struct {
	Create keysetCreate `cmd:"" help:"Make the file that seals providers' credentials (keyset_file). All replicas need the same one."`
}

type keysetCreate struct {
	File string `arg:"" help:"Made with mode 0600; a file that exists is never overwritten."`
}

// Run makes the file.
func (c *keysetCreate) Run(p *program) error {
	err := tenants.CreateKeysetFile(c.File)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists and is left as it is: without it nothing that it sealed could be opened again", c.File)
	}
	if err != nil {
		return err
	}
	return p.show(map[string]string{"keyset_file": c.File},
		[]string{"A new keyset is in " + c.File + ". Keep a copy apart from the database: without it no connection can be used."})
}
