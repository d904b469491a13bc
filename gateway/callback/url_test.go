package callback

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCheckURLTakes(t *testing.T) {
	t.Parallel()
	const nowhere, development, production = 0, 1, 2
	longest := "https://shop.example/" + strings.Repeat("x", maxURL-len("https://shop.example/"))
	for text, level := range map[string]int{
		"https://shop.example/callback?a=1&b=%20":     production,
		"HTTPS://Shop.Example/":                       production,
		"https://shop.example":                        production,
		"https://shop.example?x=1":                    production,
		"https://shop.example:443/":                   production,
		"https://shop.example:8443/":                  production,
		"https://xn--bcher-kva.example/":              production,
		"https://my_shop.a-b.co.example/":             production,
		"https://3com.example/":                       production,
		"https://1.2.3.4.example/":                    production,
		"https://1.1.1.1/":                            production,
		"https://[2606:4700:4700::1111]:8443/x":       production,
		"https://shop.example/http://127.0.0.1/":      production,
		"https://shop.example/a@b":                    production,
		longest:                                       production,
		longest + "x":                                 nowhere,
		"http://shop.example/":                        development,
		"http://localhost:3000/hook":                  development,
		"http://shop:3000/":                           development,
		"https://127.0.0.1:9443/":                     development,
		"http://[::1]:8080/":                          development,
		"http://127.9.9.9/":                           development,
		"https://shop.example:22/":                    development,
		"http://10.0.0.1/":                            nowhere,
		"http://169.254.169.254/":                     nowhere,
		"http://[::ffff:127.0.0.1]/":                  nowhere,
		"http://0.0.0.0/":                             nowhere,
		"http://127.1/":                               nowhere,
		"http://localhost:0/":                         nowhere,
		"http://localhost:65536/":                     nowhere,
		"http://user@localhost/":                      nowhere,
		"ftp://localhost/":                            nowhere,
		"https://" + strings.Repeat("a.", 130) + "x/": nowhere,
	} {
		if err := CheckURL(text, false); (err == nil) != (level == production) {
			t.Errorf("%q in production: %v", text, err)
		}
		if err := CheckURL(text, true); (err == nil) != (level != nowhere) {
			t.Errorf("%q in development: %v", text, err)
		}
	}
}

// TestCheckURLSays: whoever gave what is no URL reads what is wrong with it, and where.
func TestCheckURLSays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"nonsense":                    "does not begin with https://",
		"/callbacks":                  "does not begin with https://",
		"shop.example/callbacks":      "does not begin with https://",
		"http://shop.example/":        "its scheme is http",
		"shop.example:8443/callbacks": "its scheme is shop.example",
		"https:shop.example":          "it has none",
		"https:///callbacks":          "it has none",
		"https://shop.example/a b":    "character 23 is not",
		`https://shop.example\a`:      "character 21 is not",
		"https://toko.example/é":      "character 22 is not",
		"https://shop.example/" + strings.Repeat("x", maxURL): "and has 2069",
		"https://shop.example:22/":                            "port 443 or 8443",
		"https://user@shop.example/":                          "user or password",
		"https://10.0.0.1/":                                   "public address",
	} {
		if err := CheckURL(text, false); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "must ") {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

func TestReceiverOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://Shop.Example/a":            "shop.example:443",
		"https://shop.example:443/b?c":      "shop.example:443",
		"https://shop.example:8443/":        "shop.example:8443",
		"http://localhost/":                 "localhost:80",
		"https://[2606:4700:4700:0::1111]/": "[2606:4700:4700:0::1111]:443",
		"https:///":                         "",
		"ftp://shop.example/":               "",
		"https://shop.example:\n/":          "",
	} {
		if got := receiverOf(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestGuardKeepsPrivateNetworksOut compares it with what the standard library
// thinks of addresses: any of them, and those that begin like known ones.
func TestGuardKeepsPrivateNetworksOut(t *testing.T) {
	t.Parallel()
	guard, local := newGuard(false, nil), newGuard(true, nil)
	judge := func(t *rapid.T, addr netip.Addr) {
		inside := !addr.IsGlobalUnicast() || addr.IsPrivate() || addr.Is4In6()
		if inside && guard.SafeAddr(addr) == nil {
			t.Errorf("%s is let through", addr)
		}
		if inside && !addr.IsLoopback() && local.SafeAddr(addr) == nil {
			t.Errorf("%s is let through in development", addr)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes")
		judge(t, netip.AddrFrom4([4]byte(bytes)))
		judge(t, netip.AddrFrom16([16]byte(bytes)))
		start := rapid.SampledFrom([]string{"::", "::ffff:0:0", "64:ff9b::", "fc00::", "fd00::", "fe80::", "fec0::", "ff02::", "2001::", "2002::"}).Draw(t, "start")
		six := netip.MustParseAddr(start).As16()
		copy(six[12:], bytes)
		judge(t, netip.AddrFrom16(six))
		four := [4]byte(bytes)
		four[0] = rapid.SampledFrom([]byte{0, 10, 127, 169, 172, 192, 224, 239, 240, 255}).Draw(t, "first")
		judge(t, netip.AddrFrom4(four))
	})
}

func TestOperatorsNetworksAreDenied(t *testing.T) {
	t.Parallel()
	guard := newGuard(false, []netip.Prefix{netip.MustParsePrefix("1.1.1.0/24"), netip.MustParsePrefix("2606:4700::/32")})
	for text, want := range map[string]bool{
		"1.1.1.1:443": false, "1.1.2.1:443": true, "[2606:4700::1]:443": false, "[2606:4701::1]:443": true,
		"1.1.2.1:8443": true, "1.1.2.1:80": false, "1.1.2.1:22": false, "127.0.0.1:443": false, "168.63.129.16:443": false,
	} {
		if err := guard.SafeAddrPort(netip.MustParseAddrPort(text)); (err == nil) != want || err != nil && !byGuard(err) {
			t.Errorf("%s: %v, want allowed %t", text, err, want)
		}
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, text := range []string{"https://shop.example/", "https://[::1]/", "https://0x7f.1/", "https://a@b/", "https://x:443/#"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if CheckURL(text, false) != nil {
			return
		}
		if CheckURL(text, true) != nil {
			t.Errorf("%q is allowed in production only", text)
		}
		receiver := receiverOf(text)
		if !strings.HasSuffix(receiver, ":443") && !strings.HasSuffix(receiver, ":8443") {
			t.Errorf("%q leads to %q", text, receiver)
		}
	})
}
