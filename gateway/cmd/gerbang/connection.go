package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"github.com/seed-f006e74d/gerbang/gateway/console"
)

type connectionCommands struct {
	Set connectionSet `cmd:"" help:"Set a merchant's account at a provider."`
}

type connectionSet struct {
	Merchant        string `arg:"" help:"The merchant's id."`
	Provider        string `arg:"" help:"The provider's name."`
	Mode            string `required:"" enum:"live,test" help:"live or test."`
	CredentialsFile string `required:"" name:"credentials-file" placeholder:"FILE" help:"Credentials as JSON; - reads standard input."`
	Owner           string `enum:"merchant,platform" default:"merchant" help:"Whose account it is: merchant or platform (${default})."`
}

// Run sets the connection and prints where the provider must send its
// notifications.
func (c *connectionSet) Run(ctx context.Context, p *program) error {
	credentials, err := p.readFile(c.CredentialsFile)
	if err != nil {
		return err
	}
	if !json.Valid(credentials) {
		return errors.New("the credentials are not valid JSON") // nothing of them belongs into a message
	}
	admin, err := p.admin()
	if err != nil {
		return err
	}
	set, err := admin.SetConnection(ctx, c.Merchant, c.Provider, console.ConnectionSpec{Mode: c.Mode, Owner: c.Owner, Credentials: credentials})
	if err != nil {
		return err
	}
	return p.show(set,
		[]string{"provider", set.Provider}, []string{"mode", set.Mode}, []string{"owner", set.Owner},
		[]string{"version", strconv.FormatInt(set.Version, 10)}, []string{"notify_url", set.NotifyURL})
}

// maxInput is more than the console takes.
const maxInput = 1 << 20

func readAll(from io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(from, maxInput+1))
	if err == nil && len(content) > maxInput {
		err = errors.New("it is larger than 1 MiB")
	}
	return content, err
}
