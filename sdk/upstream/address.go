package upstream

import (
	"cmp"
	"errors"
	"net/netip"
	"net/url"
	"strings"
)

// BaseURL is the address of an API, as a connection gives it, in one form however it
// is written, without a slash at its end. Credentials leave the machine only
// encrypted: http is for a simulator on the loopback interface. An empty text is the
// usual address, where there is one.
func BaseURL(text, usual string) (string, error) {
	u, err := url.Parse(cmp.Or(text, usual))
	switch {
	case err != nil || u.Host == "":
		return "", errors.New("connection: base_url: not a URL")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("connection: base_url: must be scheme, host and path alone")
	case u.Scheme == "https", u.Scheme == "http" && Loopback(u.Hostname()):
		u.Host = strings.TrimSuffix(strings.ToLower(u.Host), ":"+defaultPorts[u.Scheme])
		return strings.TrimRight(u.String(), "/"), nil
	}
	return "", errors.New("connection: base_url: must be https, or http to a loopback address")
}

var defaultPorts = map[string]string{"https": "443", "http": "80"}

// Loopback reports whether a host is this machine, written as an address or as localhost.
func Loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
