package edge

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/jsonbody"
)

// credential is secret_key or merchant_id as the body or the query has it. It is
// kept apart from the document, so that neither can travel further with it.
type credential struct {
	text      string
	given     bool // null and "" are not given
	malformed bool // it is not a string, or there are two that differ
}

// body is a request's body, parsed.
type body struct {
	document catalog.Document
	key      credential
	merchant credential
}

// decode reads a body with the credentials apart.
func decode(text []byte) (body, error) {
	b := &body{}
	document, err := jsonbody.Read(text, b.apart)
	if err != nil {
		return body{}, err
	}
	b.document = document
	return *b, nil
}

func (b *body) apart(name string) func(jsontext.Value) error {
	switch name {
	case "secret_key":
		return b.key.read
	case "merchant_id":
		return b.merchant.read
	}
	return nil
}

// read takes a credential without judging it: whatever is wrong with it is
// AUTH_FAILED, and that is said later.
func (c *credential) read(value jsontext.Value) error {
	if value.Kind() == jsontext.KindNull {
		return nil
	}
	if value.Kind() != jsontext.KindString {
		c.given, c.malformed = true, true
		return nil
	}
	text, err := jsontext.AppendUnquote(nil, value)
	c.text, c.given = string(text), len(text) > 0
	return err
}

// join takes a credential of the query. It is false when the body has another.
func (c *credential) join(text string) bool {
	if c.given {
		return !c.malformed && c.text == text
	}
	*c = credential{text: text, given: true}
	return true
}
