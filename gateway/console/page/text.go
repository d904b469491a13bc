package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"path"
	"reflect"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/text"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

//go:embed assets/*.js assets/*.css assets/*.svg
var assetFiles embed.FS

//go:embed templates/*.html
var ownTemplates embed.FS

// pages are templates by language and name, and the files they use.
type pages struct {
	templates map[string]map[string]*template.Template
	assets    map[string][]byte
	names     map[string]string // path by plain name
	location  *time.Location
}

func newPages(c Config) (*pages, error) {
	p := &pages{
		templates: map[string]map[string]*template.Template{}, assets: map[string][]byte{}, names: map[string]string{},
		location: c.Location,
	}
	if p.location == nil {
		p.location = time.FixedZone("WIB", 7*60*60)
	}
	if err := p.readAssets(); err != nil {
		return nil, err
	}
	own, err := fs.Sub(ownTemplates, "templates")
	if err != nil {
		return nil, err
	}
	for _, l := range text.Languages {
		layout, err := template.New("layout.html").Funcs(p.functions(l.Code)).ParseFS(own, "layout.html", "_*.html")
		if err != nil {
			return nil, err
		}
		p.templates[l.Code] = map[string]*template.Template{}
		for _, from := range []fs.FS{own, c.Templates} {
			if err := p.parse(layout, from, l.Code); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// parse makes each file a page within the layout, together with the files that begin with
// an underscore: parts that several pages show.
func (p *pages) parse(layout *template.Template, from fs.FS, code string) error {
	if from == nil {
		return nil
	}
	files, err := fs.Glob(from, "*.html")
	if err != nil {
		return err
	}
	for _, file := range files {
		if file == "layout.html" || strings.HasPrefix(file, "_") {
			continue
		}
		one, err := layout.Clone()
		if err != nil {
			return err
		}
		if parts, _ := fs.Glob(from, "_*.html"); len(parts) > 0 {
			if one, err = one.ParseFS(from, "_*.html"); err != nil {
				return err
			}
		}
		if p.templates[code][file], err = one.ParseFS(from, file); err != nil {
			return err
		}
	}
	return nil
}

func (p *pages) readAssets() error {
	files, err := fs.Glob(assetFiles, "assets/*")
	if err != nil {
		return err
	}
	for _, file := range files {
		content, err := fs.ReadFile(assetFiles, file)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		plain, extension := path.Base(file), path.Ext(file)
		name := strings.TrimSuffix(plain, extension) + "." + hex.EncodeToString(sum[:6]) + extension
		p.assets[name], p.names[plain] = content, "/assets/"+name
	}
	return nil
}

// asset serves a file, whose name has its digest in it.
func (s *Site) asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	content, ok := s.pages.assets[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
}

func (p *pages) render(w io.Writer, code, name string, data shown) error {
	t := p.templates[code][name]
	if t == nil {
		return fmt.Errorf("page: no template %s", name)
	}
	return t.ExecuteTemplate(w, "layout.html", data)
}

// fragment renders one named part of the layout.
func (p *pages) fragment(w io.Writer, code, name string, data any) error {
	return p.templates[code]["problem.html"].ExecuteTemplate(w, name, data)
}

// functions are what templates call: t for a text, with arguments as in Sprintf, rupiah for
// an amount and number for a count, of any integer type, when for a time, and zone for
// that of all times.
func (p *pages) functions(code string) template.FuncMap {
	return template.FuncMap{
		"t":      func(english any, values ...any) string { return text.In(code, fmt.Sprint(english), values...) }, // which may be of a type of its own
		"rupiah": func(amount any) string { return signed(reflect.Indirect(reflect.ValueOf(amount)).Int()) },
		"number": func(n any) string {
			return strings.TrimPrefix(signed(reflect.Indirect(reflect.ValueOf(n)).Int()), "Rp")
		},
		"when":      func(at any) template.HTML { return p.when(code, at) },
		"tone":      Tone,
		"zone":      func() string { return time.Now().In(p.location).Format("MST (UTC-07:00)") },
		"languages": func() []text.Language { return text.Languages },
	}
}

// signed writes an amount that may be below zero.
func signed(a int64) string {
	if a < 0 {
		return "\u2212" + money.Amount(-a).Format()
	}
	return money.Amount(a).Format()
}

// when writes a time for people, and for programs beside it. The layout names the zone, once.
func (p *pages) when(code string, at any) template.HTML {
	var moment time.Time
	switch a := at.(type) {
	case time.Time:
		moment = a
	case *time.Time:
		if a != nil {
			moment = *a
		}
	}
	if moment.IsZero() {
		return "\u2013"
	}
	local := moment.In(p.location)
	shown := text.Day(code, local) + local.Format(", 15:04:05")
	return template.HTML(`<time datetime="` + moment.UTC().Format(time.RFC3339Nano) + `">` + shown + `</time>`) //nolint:gosec // of a time alone
}
