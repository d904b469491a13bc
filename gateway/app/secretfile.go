package app

import (
	"fmt"
	"os"
	"strings"
)

// readSecretFile reads a secret without the white space around it. A file that others
// than its owner and group may read or write is refused: whoever has an account on
// this machine would have the secret.
func readSecretFile(path string) (string, error) {
	if err := ofFew(path); err != nil {
		return "", err
	}
	content, err := os.ReadFile(path)
	return strings.TrimSpace(string(content)), err
}

// ofFew refuses a file that others than its owner and group may use.
func ofFew(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return fmt.Errorf("%s has mode %#o, so everybody on this machine may use it: chmod o= %s", path, mode, path)
	}
	return nil
}
