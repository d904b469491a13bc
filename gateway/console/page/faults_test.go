package page_test

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/console/page/pagetest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestFaults: what refuses a form of a console is told in Indonesian, too.
func TestFaults(t *testing.T) {
	t.Parallel()
	pagetest.Faults(t, []string{"*.go", "../*.go", "../merchants/*.go", "../operators/*.go", "../../signin/*.go", "../../sandbox/play.go"},
		"The request is invalid:",
		// Of the admin API's other files, which mostly refuse what operators ask.
		"must be a time such as 2026-01-02T03:04:05Z", "There is no such %s.", "must have 1 to 255 characters, without control characters", "must be a whole number from 1 to 1000",
		"must have at most 500 characters, without control characters",
		// Of a callback's URL.
		"must have at most %s characters, and has %s", "must be printable ASCII without spaces and backslashes; character %s is not",
		"must be an absolute https URL with a host, as https://shop.example/callbacks",
		"must be an absolute https URL with a host, as https://shop.example/callbacks: it does not begin with https://",
		"must be an absolute https URL with a host, as https://shop.example/callbacks: its scheme is %s",
		"must be an absolute https URL with a host, as https://shop.example/callbacks: it has none",
		"must not hold a user or password", "must not have a fragment", "must have a host name, or an address in its usual notation",
		"must use port 443 or 8443", "must have a port from 1 to 65535", "must lead to a public address",
		// Of the fields of credentials, by their schema.
		"is required", "is required: %s", "is optional", "is optional: %s", "is not a known field", "must be at least %s", "must be at most %s",
		"must have at least %s characters", "must have at most %s characters", "must be a valid %s", "must be %s, not %s",
	)
}

// TestANewcomerIsRefusedInIndonesian: from the first form on, field names alone are as the form has them.
func TestANewcomerIsRefusedInIndonesian(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	secret, err := s.invite(t, "test", s.merchant, tenants.RoleOwner, "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.site(t, false))
	t.Cleanup(server.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	read := func(method string, values url.Values) string {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/invitations/"+secret, strings.NewReader(values.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Accept-Language", "id")
		answer, err := (&http.Client{Jar: jar}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return html.UnescapeString(string(text))
	}
	factor := regexp.MustCompile(`data-factor>([A-Z2-7]+)<`).FindStringSubmatch(read(http.MethodGet, nil))
	if factor == nil {
		t.Fatal("the invitation shows no second factor")
	}
	for want, form := range map[string]url.Values{
		"Permintaan tidak sah: code bukan kode yang ditampilkan aplikasi saat ini; periksa jam ponsel.": {"name": {"Ada"}, "password": {password}, "code": {"x"}},
		"Permintaan tidak sah: password harus 12 sampai 200 karakter.":                                  {"name": {"Ada"}, "password": {"short"}, "code": {s.code(factor[1])}},
	} {
		if text := read(http.MethodPost, form); !strings.Contains(text, want) {
			t.Errorf("%v is refused without %q: %s", form, want, text)
		}
	}
}
