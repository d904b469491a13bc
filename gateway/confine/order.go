package confine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// Command is the subcommand whose work is [Launch].
const Command = "plugin-launch"

// Refused is the exit code of a launcher that started nothing. Its last line on
// standard error says why.
const Refused = 125

// envOrder carries the order to the launcher. The plugin never sees it.
const envOrder = "GERBANG_PLUGIN_LAUNCH"

// Order says which binary to start, and what it may reach.
type Order struct {
	Path   string   // of the binary
	SHA256 string   // of the binary, in hex; any other is not started
	Name   string   // what a list of processes shows
	Args   []string // beside the name
	Env    []string
	Host   int // process id of the host; the plugin ends with it

	Scratch string   // the one directory that it may write
	Read    []string // files and directories that it may read, beside what every program needs
	Ports   []uint16 // TCP ports that it may connect to
	User    *User    // nil for the host's own

	// Listen is the TCP port of a binary that plays the upstream in a test. It then keeps
	// files in Scratch. 0 for a plugin, which listens on none.
	Listen uint16
}

// User is whom a plugin runs as.
type User struct{ UID, GID int }

// check refuses what no launcher could start.
func (o Order) check() error {
	if want, err := hex.DecodeString(o.SHA256); err != nil || len(want) != sha256.Size {
		return errors.New("the pinned SHA-256 must be 64 hex digits")
	}
	return nil
}

// copyTo copies the binary and compares what was copied with the approved digest.
func (o Order) copyTo(w io.Writer) error {
	file, err := os.Open(o.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, sum), file); err != nil {
		return fmt.Errorf("copy %s: %w", o.Path, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != o.SHA256 {
		return fmt.Errorf("checksums did not match: %s is not the approved binary: its SHA-256 is %s, approved is %s", o.Path, got, o.SHA256)
	}
	return nil
}
