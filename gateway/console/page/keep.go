package page

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// kept are the fields that come back filled when their form has led to another page first,
// as for a fresh code. None of them ever holds a secret: passwords, codes and credentials have
// other names, and are typed again.
var kept = []string{
	"action", "amount", "burst", "email", "expires", "for", "ips", "limit", "markup", "merchant", "mode", "name", "overlap", "provider", "rate", "reason",
	"reference", "refund_id", "repeat_within", "resolution", "role", "scope", "tier", "time_zone", "transfers", "what",
}

// largestKept bounds what a session holds of a form, in bytes.
const largestKept = 4 << 10

// form is what was typed, and where.
type form struct {
	At     string    // the page
	Action string    // of its form
	Sent   time.Time // for ten minutes
	Values url.Values
}

// keep keeps the form that was sent until its page is shown again.
func (v *Visit) keep(at string) {
	_ = v.Request.ParseForm() // what can't be read is typed again
	f := form{at, v.Request.URL.RequestURI(), v.site.deps.Now(), url.Values{}}
	for name, values := range v.Request.PostForm {
		if slices.Contains(kept, name) {
			f.Values[name] = values
		}
	}
	if text, err := json.Marshal(f); err == nil && len(f.Values) > 0 && len(text) <= largestKept {
		v.site.sessions.Put(v.ctx(), keyForm, text)
	}
}

// refill puts into a page what was typed there before.
func (v *Visit) refill(page []byte) []byte {
	var f form
	err := json.Unmarshal(v.site.sessions.GetBytes(v.ctx(), keyForm), &f)
	if err != nil || f.At != v.Request.URL.RequestURI() {
		return page
	}
	v.site.sessions.Remove(v.ctx(), keyForm)
	document, err := html.Parse(bytes.NewReader(page))
	if err != nil || v.site.deps.Now().Sub(f.Sent) > confirmedFor {
		return page
	}
	for n := range document.Descendants() {
		if n.DataAtom == atom.Form && attribute(n, "action") == f.Action && f.fill(n) {
			break
		}
	}
	var out bytes.Buffer
	if err := html.Render(&out, document); err != nil {
		return page
	}
	return out.Bytes()
}

// fill fills a form and opens what it stands in. It is false for another form with the same
// action, whose hidden fields differ.
func (f form) fill(of *html.Node) bool {
	for n := range of.Descendants() {
		if n.DataAtom == atom.Input && attribute(n, "type") == "hidden" && slices.Contains(kept, attribute(n, "name")) && f.Values.Get(attribute(n, "name")) != attribute(n, "value") {
			return false
		}
	}
	for n := range of.Descendants() {
		values, typed := f.Values[attribute(n, "name")]
		switch {
		case n.DataAtom == atom.Option:
			if values, typed = f.Values[attribute(n.Parent, "name")]; typed {
				value, given := attributeOf(n, "value")
				if !given && n.FirstChild != nil {
					value = n.FirstChild.Data
				}
				set(n, "selected", slices.Contains(values, value))
			}
		case n.DataAtom == atom.Textarea && typed:
			for n.FirstChild != nil {
				n.RemoveChild(n.FirstChild)
			}
			n.AppendChild(&html.Node{Type: html.TextNode, Data: values[0]})
		case n.DataAtom != atom.Input || !slices.Contains(kept, attribute(n, "name")):
		case slices.Contains([]string{"checkbox", "radio"}, attribute(n, "type")):
			set(n, "checked", slices.Contains(values, attribute(n, "value")))
		case typed && attribute(n, "type") != "hidden" && attribute(n, "type") != "password":
			set(n, "value", false)
			n.Attr = append(n.Attr, html.Attribute{Key: "value", Val: values[0]})
		}
	}
	for n := of.Parent; n != nil; n = n.Parent {
		if n.DataAtom == atom.Details {
			set(n, "open", true)
		}
	}
	return true
}

func attribute(n *html.Node, name string) string {
	value, _ := attributeOf(n, name)
	return value
}

func attributeOf(n *html.Node, name string) (string, bool) {
	i := slices.IndexFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
	if i < 0 {
		return "", false
	}
	return n.Attr[i].Val, true
}

// set gives an element an attribute without a value, or takes one away.
func set(n *html.Node, name string, is bool) {
	n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
	if is {
		n.Attr = append(n.Attr, html.Attribute{Key: name})
	}
}
