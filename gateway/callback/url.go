package callback

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	maxURL   = 2048
	maxHost  = 253
	maxLabel = 63
)

// What is wrong with a URL, as the rest of a sentence that begins with its name.
var (
	errURLForm     = errors.New("must be an absolute https URL with a host, as https://shop.example/callbacks")
	errURLUser     = errors.New("must not hold a user or password")
	errURLFragment = errors.New("must not have a fragment")
	errURLHost     = errors.New("must have a host name, or an address in its usual notation")
	errURLPort     = errors.New("must use port 443 or 8443")
	errURLPortAny  = errors.New("must have a port from 1 to 65535")
	errURLPublic   = errors.New("must lead to a public address")
)

// nowherePublic are names that never lead to a public address, and those that
// networks use inside.
var nowherePublic = []string{"localhost", "local", "internal", "intranet", "lan", "corp", "home", "private", "home.arpa", "onion", "invalid"}

// CheckURL judges what a callback URL shows by itself, without asking a resolver,
// as early as a merchant names it and again on each try. The error's text is for
// the merchant and begins with "must". Development also allows http, loopback
// and any port.
//
// Names must be ASCII (an international one in its xn-- form) and in no form
// that resolvers read in different ways: no odd notations of IPv4, no zones, no
// dot at the end.
func CheckURL(text string, development bool) error {
	if err := checkText(text); err != nil {
		return err
	}
	u, err := url.Parse(text)
	if err != nil {
		return errURLForm
	}
	if err := checkForm(u, development); err != nil {
		return err
	}
	switch {
	case u.User != nil:
		return errURLUser
	case strings.Contains(text, "#"):
		return errURLFragment
	}
	if err := checkPort(u, development); err != nil {
		return err
	}
	return checkHost(u, development)
}

// checkText says which character can't stand in a URL.
func checkText(text string) error {
	if len(text) > maxURL {
		return fmt.Errorf("must have at most %d characters, and has %d", maxURL, len(text))
	}
	for i, r := range text {
		if r <= ' ' || r > '~' || r == '\\' {
			return fmt.Errorf("must be printable ASCII without spaces and backslashes; character %d is not", i+1)
		}
	}
	return nil
}

// checkForm says what keeps a URL from being absolute.
func checkForm(u *url.URL, development bool) error {
	switch {
	case u.Scheme == "":
		return fmt.Errorf("%w: it does not begin with https://", errURLForm)
	case u.Scheme != "https" && (u.Scheme != "http" || !development):
		return fmt.Errorf("%w: its scheme is %s", errURLForm, u.Scheme)
	case u.Opaque != "" || u.Host == "" && u.User == nil:
		return fmt.Errorf("%w: it has none", errURLForm)
	}
	return nil
}

// receiverOf names who a URL leads to, as lower-case host and port, or is empty
// where CheckURL would refuse. Callbacks with the same receiver share a lane.
func receiverOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	case u.Scheme == "http":
		port = "80"
	default:
		return ""
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

func checkPort(u *url.URL, development bool) error {
	wrong := errURLPort
	if development {
		wrong = errURLPortAny
	}
	text := u.Port()
	if text == "" {
		if strings.HasSuffix(u.Host, ":") {
			return wrong
		}
		return nil
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 || text[0] == '0' || !development && !slices.Contains(publicPorts, uint16(port)) {
		return wrong
	}
	return nil
}

func checkHost(u *url.URL, development bool) error {
	host := u.Hostname()
	// The parser of URLs sees to most of that, by settings that may change.
	if strings.HasPrefix(u.Host, "[") != strings.Contains(host, ":") || strings.Contains(u.Host, "%") {
		return errURLHost
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return checkAddr(addr, development)
	}
	labels := strings.Split(strings.ToLower(host), ".")
	if len(host) > maxHost || slices.ContainsFunc(labels, badLabel) || isNumber(labels[len(labels)-1]) {
		return errURLHost
	}
	if !development && (len(labels) == 1 || slices.ContainsFunc(nowherePublic, func(suffix string) bool {
		return strings.HasSuffix("."+strings.Join(labels, "."), "."+suffix)
	})) {
		return errURLPublic
	}
	return nil
}

func checkAddr(addr netip.Addr, development bool) error {
	guard := publicGuard
	if development {
		guard = localGuard
	}
	if guard.SafeAddr(addr) != nil {
		return errURLPublic
	}
	return nil
}

func badLabel(label string) bool {
	return label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' ||
		strings.ContainsFunc(label, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
		})
}

// isNumber finds the last part of IPv4 addresses in the notations that some
// resolvers take: decimal, octal, hexadecimal, with fewer than four parts. No
// top-level domain looks like that.
func isNumber(label string) bool {
	digits, isHex := strings.CutPrefix(label, "0x")
	return !strings.ContainsFunc(digits, func(r rune) bool {
		return (r < '0' || r > '9') && (!isHex || r < 'a' || r > 'f')
	})
}
