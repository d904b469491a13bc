package edge

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
)

// finish answers with what is finished, packed where the caller takes that. A GET may
// ask whether what it has is still the answer.
func (x *exchange) finish(f *catalog.Finished) {
	header, text := x.Header(), f.Plain
	header["Cache-Control"] = noStore
	if packed := f.Gzip(); packed != nil {
		header["Vary"] = varyEncoding
		if takesGzip(x.request.Header) {
			header["Content-Encoding"] = gzipEncoding
			text = packed
		}
	}
	if x.request.Method == http.MethodGet {
		header["Etag"] = []string{f.ETag()}
		header["Cache-Control"] = askAgain
		if has(x.request.Header, f.ETag()) {
			x.decided()
			delete(header, "Content-Encoding")
			x.WriteHeader(http.StatusNotModified)
			return
		}
	}
	x.send(http.StatusOK, text)
}

// takesGzip reports whether a caller takes packed answers.
func takesGzip(header http.Header) bool {
	for _, line := range header["Accept-Encoding"] {
		for one := range strings.SplitSeq(line, ",") {
			name, weight, _ := strings.Cut(one, ";")
			if strings.EqualFold(strings.TrimSpace(name), "gzip") {
				return !noWeight.MatchString(weight)
			}
		}
	}
	return false
}

// noWeight is a weight with which something is refused.
var noWeight = regexp.MustCompile(`^\s*q=0(\.0*)?\s*$`)

// has reports whether a caller says that it has this content.
func has(header http.Header, etag string) bool {
	for _, line := range header["If-None-Match"] {
		for one := range strings.SplitSeq(line, ",") {
			one = strings.TrimSpace(one)
			if one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(etag, "W/") {
				return true
			}
		}
	}
	return false
}

var (
	askAgain     = []string{"private, no-cache"}
	varyEncoding = []string{"Accept-Encoding"}
	varyLanguage = []string{"Accept-Encoding, Accept-Language"}
	gzipEncoding = []string{"gzip"}
)
