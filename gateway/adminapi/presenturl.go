package adminapi

import (
	"net/url"
	"strings"
)

// PresentURL is a callback URL as it may be seen by operators and kept in the
// audit: merchants put tokens of their own into the query, so its values are
// hidden, and so is what has no name.
func PresentURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return ""
	}
	shown := u.Scheme + "://" + u.Host + u.EscapedPath()
	if u.RawQuery == "" {
		return shown
	}
	parts := strings.Split(u.RawQuery, "&")
	for i, part := range parts {
		name, _, named := strings.Cut(part, "=")
		if parts[i] = "…"; named {
			parts[i] = name + "=…"
		}
	}
	return shown + "?" + strings.Join(parts, "&")
}
