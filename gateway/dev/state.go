package dev

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// state is what a data directory remembers between runs, in a file of mode
// 0600: the keys of the demo merchants are shown to their owner alone.
type state struct {
	AdminToken   string            `json:"admin_token"`
	SandboxToken string            `json:"sandbox_token"`
	Merchants    []merchant        `json:"merchants"`
	Addresses    map[string]string `json:"addresses"` // of each simulator, kept so that its links stay valid

	path string
	lock *os.File
}

// merchant is a demo merchant, as the ready file shows it.
type merchant struct {
	MerchantID         string `json:"merchant_id"`
	Tier               string `json:"tier"`
	LiveKey            string `json:"live_key"`
	TestKey            string `json:"test_key"`
	CallbackSecret     string `json:"callback_secret"`
	TestCallbackSecret string `json:"test_callback_secret"`
}

// openState makes the data directory ours and reads what it remembers.
func openState(dir string) (*state, error) {
	// Others may pass through, because a database started by root runs as another
	// user and lives below; each file of ours is its owner's alone.
	if err := os.MkdirAll(dir, 0o711); err != nil { // see above
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil { // a descriptor fits
		_ = lock.Close() // nothing was written
		return nil, fmt.Errorf("another gerbang dev uses %s; stop it, or name another directory with --data", dir)
	}
	s := &state{path: filepath.Join(dir, "dev.json"), lock: lock, Addresses: map[string]string{}}
	content, err := os.ReadFile(s.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		s.AdminToken, s.SandboxToken = rand.Text()+rand.Text(), rand.Text()+rand.Text()
		return s, s.save()
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(content, s); err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	if s.Addresses == nil {
		s.Addresses = map[string]string{}
	}
	return s, nil
}

func (s *state) save() error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(s.path, content)
}

func (s *state) release() { _ = s.lock.Close() } // the lock goes with the descriptor

// writeFile replaces a file at once, readable by its owner alone.
func writeFile(path string, content []byte) error {
	next, err := os.CreateTemp(filepath.Dir(path), ".next-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(next.Name()) // gone when it was renamed
	if _, err := next.Write(content); err != nil {
		return errors.Join(err, next.Close())
	}
	if err := errors.Join(next.Sync(), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}
