package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/tenants"
)

type keysetCommands struct {
	Create keysetCreate `cmd:"" help:"Make the keyset that seals providers' credentials. All replicas need the same one."`
	Rotate keysetRotate `cmd:"" help:"Add a key to a keyset and seal with it from now on. What other keys sealed still opens."`
	List   keysetList   `cmd:"" help:"List the keys that the running gateway has in force, and how many values each has sealed."`
	Reseal keysetReseal `cmd:"" help:"Seal anew, with the present key, what older keys have sealed."`
	Prune  keysetPrune  `cmd:"" help:"Remove the older keys from a keyset that seal nothing any more in the running gateway."`
}

// keysetPath is a keyset's file, or - for standard input and output: so it goes
// through a pipe from and to what encrypts it.
type keysetPath string

const throughPipe keysetPath = "-"

// edit changes the keyset.
func (f keysetPath) edit(p *program, change func(*tenants.Keyset) error) error {
	if f != throughPipe {
		return tenants.EditKeysetFile(string(f), change)
	}
	document, err := readAll(p.in)
	if err != nil {
		return err
	}
	k, err := tenants.ParseKeyset(document)
	if err == nil {
		err = change(k)
	}
	if err != nil {
		return err
	}
	return f.print(p, k)
}

func (keysetPath) print(p *program, k *tenants.Keyset) error {
	document, err := k.Document()
	if err == nil {
		_, err = p.out.Write(document)
	}
	return err
}

// tell shows what was done, beside the keyset where that is printed.
func (f keysetPath) tell(p *program, value any, text string) error {
	if f == throughPipe {
		_, err := fmt.Fprintln(p.err, text)
		return err
	}
	return p.show(value, []string{text})
}

type keysetCreate struct {
	File keysetPath `arg:"" help:"Made with mode 0600; a file that exists is never overwritten. - prints the keyset."`
}

// Run makes the keyset.
func (c *keysetCreate) Run(p *program) error {
	if c.File == throughPipe {
		k, err := tenants.NewKeyset()
		if err != nil {
			return err
		}
		return c.File.print(p, k)
	}
	err := tenants.CreateKeysetFile(string(c.File))
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists and is left as it is: without it nothing that it sealed could be opened again", c.File)
	}
	if err != nil {
		return err
	}
	return p.show(map[string]string{"keyset_file": string(c.File)},
		[]string{"A new keyset is in " + string(c.File) + ". Keep a copy apart from the database: without it no connection can be used."})
}

type keysetRotate struct {
	File    keysetPath `arg:"" help:"The keyset's file; - reads standard input and prints the new keyset."`
	Prepare bool       `help:"Add the key without using it: for replicas with files of their own, which must all know it first. The next rotate uses it."`
}

// Run adds the key.
func (c *keysetRotate) Run(p *program) error {
	var key tenants.KeyNumber
	err := c.File.edit(p, func(k *tenants.Keyset) (err error) {
		if c.Prepare {
			key, err = k.Prepare()
		} else {
			key, err = k.Rotate()
		}
		return err
	})
	if err != nil {
		return err
	}
	text := fmt.Sprintf("Key %d seals from now on; gateways that read this keyset take it by themselves. Keep a copy, then run gerbang keyset reseal.", key)
	if c.Prepare {
		text = fmt.Sprintf("Key %d is in the keyset and seals nothing yet. Once every replica has it, run gerbang keyset rotate.", key)
	}
	return c.File.tell(p, map[string]any{"key": key, "prepared": c.Prepare}, text)
}

type keysetList struct{}

// Run prints a row for each key.
func (*keysetList) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	keys, err := admin.Keyset(ctx)
	if err != nil {
		return err
	}
	return p.show(keys, table(keys)...)
}

type keysetReseal struct{}

// Run seals anew and names what could not be opened, which is a failure.
func (*keysetReseal) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	done, err := admin.Reseal(ctx)
	if err != nil {
		err = fmt.Errorf("%w\n%d were sealed anew before; what is left is done by running it again", err, done.Resealed)
		if done.Resealed > 0 {
			return incomplete(err)
		}
		return err
	}
	rows := [][]string{
		{"key", strconv.FormatUint(uint64(done.Primary), 10)}, {"sealed anew", strconv.Itoa(done.Resealed)},
		{"replaced meanwhile", strconv.Itoa(done.Replaced)}, {"not opened", strconv.Itoa(len(done.Unopened))},
	}
	for _, place := range done.Unopened {
		what := "merchant " + place.MerchantID + ", mode " + place.Mode + ": the callback secret"
		switch {
		case place.Mode == "":
			what = "the installation's key of names"
		case place.Provider != "":
			what = "merchant " + place.MerchantID + ", mode " + place.Mode + ": the connection to " + place.Provider
		}
		rows = append(rows, []string{"", what})
	}
	if err := p.show(done, rows...); err != nil {
		return err
	}
	if len(done.Unopened) > 0 {
		return incomplete(errors.New("some values are sealed with a key that the keyset does not have; they were left as they are"))
	}
	return nil
}

type keysetPrune struct {
	File keysetPath `arg:"" help:"The keyset's file, as the running gateway has it in force; - reads standard input and prints the new keyset."`
	confirmed
}

// Run removes what seals nothing.
func (c *keysetPrune) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if err := c.confirm(p, "Remove the older keys from "+string(c.File)+": what they sealed, such as in a backup, opens with a copy of them alone"); err != nil {
		return err
	}
	inUse, err := admin.Keyset(ctx)
	if err != nil {
		return err
	}
	var removed []tenants.KeyNumber
	if err := c.File.edit(p, func(k *tenants.Keyset) (err error) {
		removed, err = prune(k, inUse)
		return err
	}); err != nil {
		return err
	}
	return c.File.tell(p, map[string]any{"removed": removed}, fmt.Sprintf("%d keys were removed. Copies that are older still have them.", len(removed)))
}

// prune removes every key that is older than the primary. It removes none when
// one of them still seals something, or when the gateway has other keys in
// force: what it told then says nothing of these.
func prune(k *tenants.Keyset, inUse []adminapi.KeyUse) (removed []tenants.KeyNumber, err error) {
	uses := map[tenants.KeyNumber]adminapi.KeyUse{}
	for _, key := range inUse {
		uses[tenants.KeyNumber(key.Number)] = key
	}
	for _, key := range k.Keys() {
		use, known := uses[key.Number]
		switch {
		case !known || use.Missing || use.Primary != key.Primary:
			return nil, fmt.Errorf("the running gateway does not have this keyset in force: key %d differs. "+
				"Is it the right file, and has the gateway read it already?", key.Number)
		case key.Primary || key.Prepared:
		case use.Values > 0:
			return nil, fmt.Errorf("key %d still seals %d values; run gerbang keyset reseal first", key.Number, use.Values)
		default:
			if err := k.Remove(key.Number); err != nil {
				return nil, err
			}
			removed = append(removed, key.Number)
		}
	}
	return removed, nil
}
