package confine

import (
	"os"
	"path/filepath"
	"strings"
)

// What a program needs to check a certificate, find a host and know a time zone.
// Private keys lie beside the certificates, so their parents are not named.
var (
	commonFiles = []string{
		"/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols",
		"/etc/localtime", "/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/cacert.pem",
	}
	commonDirs = []string{
		"/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted", "/etc/ca-certificates/extracted",
		"/usr/share/ca-certificates", "/usr/local/share/ca-certificates", "/usr/share/zoneinfo", "/etc/zoneinfo",
	}
)

// readable lists the files and directories that every plugin may read, with what
// their links lead to.
func readable() []string {
	var paths []string
	for _, file := range commonFiles {
		paths = append(paths, file)
		// A resolver's file is replaced when the network changes. The rule is on the
		// file, so where it is a link into a directory for that, the directory is named.
		if target, err := filepath.EvalSymlinks(file); err == nil && target != file && strings.HasPrefix(target, "/run/") {
			paths = append(paths, filepath.Dir(target))
		}
	}
	for _, dir := range commonDirs {
		paths = append(paths, dir)
		paths = append(paths, linked(dir)...)
	}
	return paths
}

// linked lists what the links of a directory lead to.
func linked(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var targets []string
	for _, entry := range entries {
		if entry.Type()&os.ModeSymlink == 0 {
			continue
		}
		target, err := filepath.EvalSymlinks(filepath.Join(dir, entry.Name()))
		if err == nil && !within(target, commonDirs) {
			targets = append(targets, target)
		}
	}
	return targets
}

func within(path string, dirs []string) bool {
	for _, dir := range dirs {
		if strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}
