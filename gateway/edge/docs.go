package edge

import (
	"net/http"
	"strconv"

	"github.com/julienschmidt/httprouter"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// documentation serves the documents for merchants, and what they load.
func (x *exchange) documentation(params httprouter.Params) {
	f, ok := x.edge.docs.File(params.ByName("name"), x.request.URL.Query().Get("lang"), x.request.Header.Get("Accept-Language"))
	if !ok {
		x.fail(fault.New(fault.NotFound, "There is no such path."))
		return
	}
	header, text := x.Header(), f.Plain
	header.Set("Content-Security-Policy", f.Policy)
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("ETag", f.ETag)
	header["Vary"] = varyLanguage
	header.Set("Cache-Control", "no-cache")
	if f.Lasting {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if has(x.request.Header, f.ETag) {
		x.WriteHeader(http.StatusNotModified)
		return
	}
	if takesGzip(x.request.Header) {
		header["Content-Encoding"] = gzipEncoding
		text = f.Packed
	}
	header.Set("Content-Type", f.Type)
	header.Set("Content-Length", strconv.Itoa(len(text)))
	x.WriteHeader(http.StatusOK)
	if x.request.Method != http.MethodHead {
		_, _ = x.Write(text) // the reader is gone
	}
}
