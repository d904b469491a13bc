package page

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/identity"
	"github.com/seed-f006e74d/gerbang/gateway/signin"
	"github.com/seed-f006e74d/gerbang/gateway/text"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Visit is one request for a page.
type Visit struct {
	Writer  http.ResponseWriter
	Request *http.Request
	Who     signin.Present // on pages for those who have signed in
	// Around is what the layout shows around the page, of the console's own making.
	Around Around

	site     *Site
	language string
}

// Around is what stands around a page.
type Around struct {
	Home    string
	Find    string // where the search box on every page leads, "" for none
	Links   []Link
	Modes   []Link // live and test, where a page knows them
	Mode    string
	Place   string // the merchant's name
	Places  []Link // other merchants of this person
	Problem string // a standing one: the merchant is suspended
}

// Link leads to a page.
type Link struct {
	Path, Text string
	Here       bool
}

func (s *Site) visit(w http.ResponseWriter, r *http.Request) *Visit {
	v := &Visit{Writer: w, Request: r, site: s}
	v.language = text.Choose(chosen(r), r.Header.Get("Accept-Language"))
	return v
}

// languageCookie holds what the visitor chose, for a year.
const languageCookie = "gerbang_language"

func chosen(r *http.Request) string {
	cookie, err := r.Cookie(languageCookie)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// Form is a value of the form or the query, without spaces around it.
func (v *Visit) Form(name string) string { return strings.TrimSpace(v.Request.FormValue(name)) }

// Language is the visitor's.
func (v *Visit) Language() string { return v.language }

// By is the name under which this person's actions are audited.
func (v *Visit) By() string { return v.Who.Person.Email }

// T is a text in the visitor's language.
func (v *Visit) T(english string) string { return text.In(v.language, english) }

// shown is everything that a template sees.
type shown struct {
	Around

	Title    string
	Site     string
	Language string
	Assets   map[string]string
	Person   tenants.Person
	Signed   bool
	Notice   string
	Provider string // the identity provider's name, "" where there is none
	Path     string
	Data     any
}

// Show renders a page.
func (v *Visit) Show(name, title string, data any) error {
	return v.render(http.StatusOK, name, title, data)
}

func (v *Visit) render(status int, name, title string, data any) error {
	var provider string
	if v.site.config.Provider != nil {
		provider = v.site.config.Provider.Name()
	}
	var out bytes.Buffer
	if err := v.site.pages.render(&out, v.language, name, shown{
		Around: v.Around, Title: title, Site: v.site.config.Title, Language: v.language, Assets: v.site.pages.names,
		Person: v.Who.Person, Signed: v.Who.Person.Email != "", Notice: v.site.sessions.PopString(v.ctx(), keyNotice),
		Path: v.Request.URL.RequestURI(), Provider: provider, Data: data,
	}); err != nil {
		return err
	}
	v.Writer.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.Writer.Header().Set("Vary", "HX-Request")
	content := out.Bytes()
	if v.Request.Method == http.MethodGet {
		content = v.refill(content)
	}
	v.Writer.WriteHeader(status)
	_, _ = v.Writer.Write(content) // the visitor may be gone
	return nil
}

// Go leads to another page of this site, where the notice is shown once, in English: it is
// translated there.
func (v *Visit) Go(path, notice string) error {
	if notice != "" {
		v.site.sessions.Put(v.ctx(), keyNotice, notice)
	}
	http.Redirect(v.Writer, v.Request, path, http.StatusSeeOther)
	return nil
}

// done ends a visit: what went wrong is shown.
func (v *Visit) done(err error) {
	switch {
	case err == nil:
		return
	case errors.Is(err, errSignIn):
		v.leave("/signin", v.next())
		return
	case errors.Is(err, errConfirm):
		if v.Request.Method == http.MethodPost {
			v.keep(v.next())
		}
		v.leave("/confirm", v.next())
		return
	}
	status, message := v.Problem(err)
	if status >= http.StatusInternalServerError {
		v.site.deps.Log.ErrorContext(v.ctx(), "a console's page failed", "console", v.site.config.Name,
			"request_id", v.Writer.Header().Get("X-Request-Id"), "route", v.Request.Pattern, "cause", err)
	}
	if v.Request.Method == http.MethodPost && v.Request.Header.Get("HX-Request") != "" {
		// The form stays as it was typed; what is wrong is said above it.
		v.Writer.Header().Set("HX-Retarget", "#problem")
		v.Writer.Header().Set("HX-Reswap", "innerHTML show:top")
		v.Writer.Header().Set("HX-Push-Url", "false")
		status = http.StatusUnprocessableEntity
		var out bytes.Buffer
		if err := v.site.pages.fragment(&out, v.language, "problem", message); err == nil {
			v.Writer.Header().Set("Content-Type", "text/html; charset=utf-8")
			v.Writer.WriteHeader(status)
			_, _ = v.Writer.Write(out.Bytes())
			return
		}
	}
	if err := v.render(status, "problem.html", v.T("This did not work"), message); err != nil {
		http.Error(v.Writer, "The page can't be shown.", http.StatusInternalServerError)
	}
}

// leave leads to a page from which the visitor comes back.
func (v *Visit) leave(path, next string) {
	target := path + "?" + url.Values{"next": {next}}.Encode()
	if v.Request.Header.Get("HX-Request") != "" {
		v.Writer.Header().Set("HX-Redirect", target)
		v.Writer.WriteHeader(http.StatusNoContent)
		return
	}
	http.Redirect(v.Writer, v.Request, target, http.StatusSeeOther)
}

// next is where to come back to: this page, or the one whose form was sent.
func (v *Visit) next() string {
	if v.Request.Method == http.MethodGet {
		return v.Request.URL.RequestURI()
	}
	from, err := url.Parse(v.Request.Referer())
	if err != nil || from.Host != v.Request.Host {
		return "/"
	}
	return from.RequestURI()
}

// within is a path of this site, "/" for anything that would lead elsewhere.
func within(path string) string {
	parsed, err := url.Parse(path)
	if err != nil || parsed.Host != "" || parsed.Scheme != "" || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.Contains(path, "\\") {
		return "/"
	}
	return path
}

// Problem is what the visitor is told of an error.
func (v *Visit) Problem(err error) (status int, message string) {
	for known, told := range map[error]int{
		signin.ErrRefused: http.StatusUnauthorized, signin.ErrTooMany: http.StatusTooManyRequests, signin.ErrBusy: http.StatusTooManyRequests,
		signin.ErrStranger: http.StatusForbidden, signin.ErrUnlinked: http.StatusForbidden, signin.ErrAnother: http.StatusForbidden,
		identity.ErrDown: http.StatusServiceUnavailable, identity.ErrFlow: http.StatusBadRequest,
		identity.ErrDenied: http.StatusForbidden, identity.ErrUnproven: http.StatusForbidden, identity.ErrUnverified: http.StatusForbidden,
		identity.ErrForeign: http.StatusForbidden, identity.ErrStale: http.StatusForbidden,
		signin.ErrInvitation: http.StatusGone, signin.ErrReset: http.StatusGone, tenants.ErrLastOwner: http.StatusConflict, tenants.ErrMember: http.StatusConflict,
	} {
		if errors.Is(err, known) {
			_, text, _ := strings.Cut(known.Error(), ": ")
			return told, v.T(strings.ToUpper(text[:1]) + text[1:] + ".")
		}
	}
	if failure, ok := errors.AsType[*adminapi.Failure](err); ok {
		return failure.Status, v.refusal(failure.Message, failure.Errors)
	}
	f := fault.From(err)
	if errors.Is(err, tenants.ErrNotFound) {
		f = fault.New(fault.NotFound, v.T("There is no such page, or it is not for you."))
	}
	if f.Code == fault.Internal {
		f.Message = v.T("Something went wrong on our side. Nothing was changed unless the page says so.")
	}
	return f.Status(), v.refusal(f.Message, f.Fields)
}

// refusal tells why something is refused. Fields keep their names.
func (v *Visit) refusal(message string, fields []fault.Field) string {
	told := func(english string) string { return text.Refusal(v.language, english) }
	text := told(message)
	if len(fields) > 0 && message == fault.Invalid(fields[0].Field, fields[0].Message).Message {
		text = told("The request is invalid:") + " " + fields[0].Field + " " + told(fields[0].Message) + "."
	}
	for _, field := range fields {
		if note := strings.TrimSpace(field.Field + " " + told(field.Message)); !strings.Contains(text, note) {
			text += "\n  " + note
		}
	}
	return text
}
