package docs

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"path"
	"strings"

	verifycallback "github.com/seed-f006e74d/gerbang/deploy/examples/verify-callback"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/text"
)

//go:embed page
var pages embed.FS

// vendored is Swagger UI as npm has it, each file packed by gzip.
//
//go:embed swagger-ui/*.gz
var vendored embed.FS

// File is one answer: a page, or what a page loads.
type File struct {
	Type   string // of its content
	Plain  []byte
	Packed []byte // by gzip
	ETag   string
	// Policy is the Content-Security-Policy.
	Policy string
	// Lasting says that the name changes with the content.
	Lasting bool
}

// Config is what the documents name.
type Config struct {
	Svc       string // the service's short name
	PublicURL string // where merchants reach the API
	// ConsoleURL is where merchants' people sign in, empty where there is no such console.
	ConsoleURL string
	Version    string // of the API
}

// Site is all documents by their names below /docs/. What is at /docs itself has none.
type Site struct{ files map[string]File }

// File finds a document, in the language of the first wish that names one: a code, or what a browser says that it accepts.
func (s *Site) File(name string, wishes ...string) (File, bool) {
	f, ok := s.files[text.Choose(wishes...)+"/"+name]
	if !ok {
		f, ok = s.files[name]
	}
	return f, ok
}

// Names are the names of all pages, in the order of the menu.
func Names() []string {
	var names []string
	for _, p := range menu {
		names = append(names, p.Name)
	}
	return names
}

// page is an entry of the menu.
type page struct{ Name, Title string }

// menu is every page. The first is also what /docs shows.
var menu = []page{
	{"quick-start", "Quick start"},
	{api, "API"},
	{"errors", "References and errors"},
	{"callbacks", "Callbacks"},
	{"going-live", "Going live"},
	{"changes", "Changes"},
}

// api is the page on which calls are tried.
const api = "api"

const (
	// closed lets a page load its style and nothing else.
	closed = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	// trying also lets Swagger UI run, show the images in its style, and call the API.
	trying = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	alone = "default-src 'none'"
)

// assets are what pages load, by the names under which templates ask for them.
var assets = []string{"docs.css", "icon.svg", "api.js", "swagger-ui.css", "swagger-ui-bundle.js"}

// types are what the endings of assets mean.
var types = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// New renders everything.
func New(c Config) (*Site, error) {
	s := &Site{files: map[string]File{}}
	named := map[string]string{}
	for _, name := range assets {
		f, err := asset(name)
		if err != nil {
			return nil, fmt.Errorf("docs: %s: %w", name, err)
		}
		sum := sha256.Sum256(f.Plain)
		extension := path.Ext(name)
		named[name] = strings.TrimSuffix(name, extension) + "." + hex.EncodeToString(sum[:6]) + extension
		s.files[named[name]] = f
	}
	for _, l := range text.Languages {
		for _, p := range append([]page{{Title: menu[0].Title}}, menu...) {
			f, err := render(c, p, l.Code, named)
			if err != nil {
				return nil, fmt.Errorf("docs: page %s in %s: %w", p.Title, l.Name, err)
			}
			s.files[l.Code+"/"+p.Name] = f
		}
	}
	return s, nil
}

func asset(name string) (File, error) {
	f := File{Type: types[path.Ext(name)], Policy: alone, Lasting: true}
	packed, err := vendored.ReadFile("swagger-ui/" + name + ".gz")
	if err != nil {
		plain, err := pages.ReadFile("page/" + name)
		return f.with(plain), err
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return File{}, err
	}
	if f.Plain, err = io.ReadAll(reader); err != nil {
		return File{}, err
	}
	f.Packed, f.ETag = packed, etag(f.Plain)
	return f, nil
}

// with completes a file by its content.
func (f File) with(plain []byte) File {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, _ = writer.Write(plain) // a buffer takes everything
	_ = writer.Close()
	f.Plain, f.Packed, f.ETag = plain, packed.Bytes(), etag(plain)
	return f
}

func etag(content []byte) string {
	sum := sha256.Sum256(content)
	return `W/"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`
}

// view is what templates see.
type view struct {
	Config
	Page   page
	API    bool // the page on which calls are tried
	Menu   []page
	Lang   string
	Root   string // of links to what stands beside /docs
	Errors []fault.Row
	Retry  []meaning
	Sent   []meaning
}

type meaning struct{ Word, Text string }

var (
	retries = []meaning{
		{string(fault.RetryNever), "Never with this reference. A new attempt needs a new one."},
		{string(fault.RetryAfterChange), "With the same reference, once what is wrong has been changed. Nothing was sent."},
		{string(fault.RetryLater), "With the same reference and the same request, after Retry-After. Nothing was sent."},
		{string(fault.RetryLookupFirst), "With the same reference and the same request: it looks the first attempt up and never makes a second."},
	}
	sents = []meaning{
		{string(fault.SentNo), "The provider did not get it."},
		{string(fault.SentRefused), "The provider got it and refused. No money was moved."},
		{string(fault.SentUnknown), "Nobody knows yet. Ask with the same reference before anything else."},
	}
)

// Languages are those in which a page can be read.
func (view) Languages() []text.Language { return text.Languages }

// source is a program that merchants copy.
func source(name string) (string, error) {
	program, err := verifycallback.Files.ReadFile(name)
	return strings.TrimSpace(strings.TrimPrefix(string(program), "//go:build ignore\n")), err
}

// render makes a page. Its links are relative, since a proxy may put the API below a path of its own, and keep its language.
func render(c Config, p page, code string, named map[string]string) (File, error) {
	v := view{Config: c, Page: p, Menu: menu, Lang: code, Root: "../", API: p.Name == api, Errors: fault.Table, Retry: retries, Sent: sents}
	base := ""
	if p.Name == "" {
		v.Page, v.Root, base = menu[0], "", "docs/"
	}
	f := File{Type: "text/html; charset=utf-8", Policy: closed}
	if v.API {
		f.Policy = trying
	}
	t, err := template.New("layout.html").Funcs(template.FuncMap{
		"source": source,
		"t":      func(english string) string { return text.In(code, english) },
		"to":     func(name string) string { return base + name + "?lang=" + code },
		"asset":  func(name string) string { return base + named[name] },
	}).ParseFS(pages, "page/layout.html", "page/"+code+"/"+v.Page.Name+".html")
	if err != nil {
		return File{}, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, v); err != nil {
		return File{}, err
	}
	return f.with(out.Bytes()), nil
}
