package app

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// readSecretFile reads a secret without the white space around it. A file that others
// than its owner and group may read or write is refused: whoever has an account on
// this machine would have the secret.
func readSecretFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return "", fmt.Errorf("%s has mode %#o, so everybody on this machine may use it: chmod o= %s", path, mode, path)
	}
	content, err := io.ReadAll(file)
	return strings.TrimSpace(string(content)), err
}
