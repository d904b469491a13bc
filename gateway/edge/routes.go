package edge

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/julienschmidt/httprouter"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// routes is one snapshot's router.
type routes struct{ *httprouter.Router }

// own are the first path segments that no operation may use.
var own = []string{"checkout", "notify"}

// newRoutes builds the router. What httprouter would panic on is refused first.
func (e *Edge) newRoutes(s *catalog.Snapshot) (*routes, error) {
	// It redirects nowhere: a redirect would repeat the query, and a key in it.
	router := &httprouter.Router{HandleMethodNotAllowed: true}
	router.NotFound = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.(*exchange).fail(fault.New(fault.NotFound, "There is no such path."))
	})
	router.MethodNotAllowed = http.HandlerFunc(methodNotAllowed)
	for _, op := range s.Operations() {
		if slices.Contains(own, strings.Split(op.Path, "/")[1]) {
			return nil, fmt.Errorf("operation %s of provider %s: the path is the gateway's own", op.Path, op.Provider)
		}
		p, err := newParameters(op)
		if err != nil {
			return nil, err
		}
		methods := []string{http.MethodPost}
		if p != nil {
			methods = append(methods, http.MethodGet)
		}
		e.handle(router, op.Path, func(x *exchange, _ httprouter.Params) { x.operate(op, p) }, methods...)
	}
	e.handle(router, "/notify/:provider/:token", (*exchange).notify, http.MethodPost)
	e.handle(router, "/checkout/:id", (*exchange).checkoutPage, http.MethodGet, http.MethodHead)
	e.handle(router, "/checkout/:id/:part", (*exchange).checkoutPart, http.MethodGet, http.MethodHead)
	document := newDocument(s.OpenAPI(), e.config.Svc)
	e.handle(router, "/openapi.json", document.serve, http.MethodGet, http.MethodHead)
	return &routes{router}, nil
}

// handle registers a handler under its pattern, which is also the route's name
// in logs and metrics.
func (e *Edge) handle(router *httprouter.Router, pattern string, handler func(*exchange, httprouter.Params), methods ...string) {
	for _, method := range methods {
		router.Handle(method, pattern, func(w http.ResponseWriter, _ *http.Request, params httprouter.Params) {
			x := w.(*exchange)
			x.route = pattern
			handler(x, params)
		})
	}
}

// methodNotAllowed keeps the Allow header, without the OPTIONS that the router
// always adds and that we don't answer.
func methodNotAllowed(w http.ResponseWriter, _ *http.Request) {
	x := w.(*exchange)
	allowed := strings.Split(x.Header().Get("Allow"), ", ")
	allowed = slices.DeleteFunc(allowed, func(method string) bool { return method == http.MethodOptions })
	x.Header().Set("Allow", strings.Join(allowed, ", "))
	x.fail(fault.Newf(fault.MethodNotAllowed, "This path has no %s; it has %s.", shortMethod(x.request.Method), strings.Join(allowed, ", ")))
}

func shortMethod(method string) string { return method[:min(len(method), 20)] }

// document is the OpenAPI document, ready to be sent.
type document struct {
	text []byte
	etag string
}

// newDocument names the headers as this service's do.
func newDocument(text []byte, svc string) *document {
	text = bytes.ReplaceAll(text, []byte("X-Svc-"), []byte("X-"+svc+"-"))
	sum := sha256.Sum256(text)
	return &document{text: text, etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`}
}

func (d *document) serve(x *exchange, _ httprouter.Params) {
	header := x.Header()
	header.Set("ETag", d.etag)
	header.Set("Cache-Control", "no-cache")
	header.Set("Content-Type", "application/json")
	// A document without secrets: browsers' tools may read it from anywhere.
	header.Set("Access-Control-Allow-Origin", "*")
	x.content("document", d.text)
}
