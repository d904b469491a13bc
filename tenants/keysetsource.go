package tenants

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// KeysetSource is where a keyset is read from.
type KeysetSource struct {
	name  string // in errors and logs
	read  func(context.Context) ([]byte, error)
	every time.Duration // how often a Vault looks for another one; zero where there can be none
	pause time.Duration // for so long what was read last holds for opening, also where a key is missed
}

const (
	fileEvery    = time.Second
	commandEvery = time.Minute
	commandPause = 10 * time.Second
	// commandTime bounds one run of a command.
	commandTime = 15 * time.Second
)

// KeysetFile is a file of cleartext JSON, of mode 0600. Its changes are noticed within a second, and at once where
// something is sealed or a key is missed.
func KeysetFile(path string) KeysetSource {
	return KeysetSource{name: path, every: fileEvery, read: func(context.Context) ([]byte, error) {
		document, _, err := readKeysetFile(path)
		return document, err
	}}
}

// KeysetText is a keyset that does not change, such as one from an environment variable; the name is that variable's.
func KeysetText(name string, document Secret) KeysetSource {
	return KeysetSource{name: name, read: func(context.Context) ([]byte, error) { return []byte(document.Reveal()), nil }}
}

// keysetCommand is a program that prints the keyset as cleartext JSON: it is how a keyset that a KMS has encrypted, or
// that a secret manager holds, is opened. It gets no arguments, the environment of this process, and 15 seconds. What it
// says on standard error goes to ours. It is run every minute, whenever something is sealed, and no more often than every
// ten seconds where a key is missed.
func keysetCommand(path string) KeysetSource {
	return KeysetSource{name: path, every: commandEvery, pause: commandPause, read: func(ctx context.Context) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, commandTime)
		defer cancel()
		command := exec.CommandContext(ctx, path)
		command.Stderr = os.Stderr
		command.WaitDelay = time.Second
		printed, err := command.StdoutPipe()
		if err == nil {
			err = command.Start()
		}
		if err != nil {
			return nil, fmt.Errorf("tenants: keyset command: %w", err)
		}
		document, err := io.ReadAll(io.LimitReader(printed, keysetMaxBytes))
		if err = errors.Join(err, command.Wait()); err != nil {
			return nil, fmt.Errorf("tenants: keyset command %s: %w", path, err)
		}
		return document, nil
	}}
}

// KeysetURI is file:PATH or exec:PATH, with or without // before the path.
func KeysetURI(uri string) (KeysetSource, error) {
	scheme, path, _ := strings.Cut(uri, ":")
	path = strings.TrimPrefix(path, "//")
	switch {
	case scheme == "file" && path != "":
		return KeysetFile(path), nil
	case scheme == "exec" && path != "":
		return keysetCommand(path), nil
	}
	return KeysetSource{}, fmt.Errorf("%w: %s: must be file:PATH or exec:PATH; a KMS is asked by a program of yours (exec:)", ErrInvalid, scheme)
}
