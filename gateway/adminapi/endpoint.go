package adminapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/jsonbody"
)

// Endpoint is one act of the admin API with what it takes and answers. The console handles it, a Client calls it, and both
// read the fields of In by their tags: path for a {part} of the route, query for a parameter, and json for the body.
type Endpoint[In, Out any] struct{ Act }

// Act is what is known of an endpoint without its types.
type Act struct {
	Route string     // a pattern of http.ServeMux: method and path
	Takes Permission // of the operator's role
	Text  string     // what it does, as a sentence

	Platform bool // platform has it, too, where the path names a merchant
	Large    bool // its body may be as large as MaxPolicy
	Slow     bool // a Client waits an hour for it
}

// Permission is what an act takes of an operator's role.
type Permission string

// The permissions.
const (
	Read          Permission = "read"
	SendCallbacks Permission = "send callbacks"
	PauseMerchant Permission = "pause a merchant's connections and transfers"
	RevokeKeys    Permission = "revoke keys"
	Resolve       Permission = "resolve exceptions"
	MoveMoney     Permission = "decide about money"
	ChangePolicy  Permission = "change policies, tiers and limits"
	Administer    Permission = "administer"
)

// None is what an endpoint takes that needs nothing but its path, or answers that has nothing to say.
type None struct{}

// Caller is a Client, or what embeds one.
type Caller interface {
	call(ctx context.Context, a Act, in reflect.Value) ([]byte, error)
}

// Call sends a request and reads its answer. An answer that refuses is a *Failure.
func (e Endpoint[In, Out]) Call(ctx context.Context, c Caller, in In) (Out, error) {
	var answer struct{ Data Out }
	content, err := c.call(ctx, e.Act, reflect.ValueOf(in))
	if err != nil {
		return answer.Data, err
	}
	if err := json.Unmarshal(content, &answer); err != nil {
		return answer.Data, fmt.Errorf("read the console's answer: %w", err)
	}
	return answer.Data, nil
}

func (c *Client) call(ctx context.Context, a Act, in reflect.Value) ([]byte, error) {
	method, path, _ := strings.Cut(a.Route, " ")
	query := url.Values{}
	_ = each(in, func(field reflect.StructField, value reflect.Value) error {
		if name := field.Tag.Get("path"); name != "" {
			path = strings.Replace(path, "{"+name+"}", url.PathEscape(value.String()), 1)
		} else if name := field.Tag.Get("query"); name != "" && !value.IsZero() {
			query.Set(name, queryText(value.Interface()))
		}
		return nil
	})
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	var body any
	if method != http.MethodGet {
		body = in.Interface()
	}
	if a.Slow {
		patient := *c
		patient.http.Timeout = time.Hour
		c = &patient
	}
	status, answer, err := c.send(ctx, method, path, body)
	if err == nil && status != http.StatusOK {
		err = c.place(ctx, c.refused(status, answer), answer)
	}
	return answer, err
}

func queryText(value any) string {
	if at, ok := value.(time.Time); ok {
		return at.Format(time.RFC3339Nano)
	}
	return fmt.Sprint(value)
}

// Decode reads a request strictly: its body, its path and its query. Its errors are *fault.Error.
func (e Endpoint[In, Out]) Decode(r *http.Request, body []byte) (In, error) {
	var in In
	if len(body) > 0 { // what a field requires is judged later
		if err := jsonbody.Decode(body, &in); err != nil {
			return in, err
		}
	}
	query := r.URL.Query()
	err := each(reflect.ValueOf(&in).Elem(), func(field reflect.StructField, value reflect.Value) error {
		if name := field.Tag.Get("path"); name != "" {
			value.SetString(r.PathValue(name))
		} else if name := field.Tag.Get("query"); name != "" && query.Get(name) != "" {
			return readQuery(value, name, query.Get(name))
		}
		return nil
	})
	return in, err
}

// readQuery sets a field to a parameter. An int is the length of a list, an int64 a number in
// an order.
func readQuery(field reflect.Value, name, text string) error {
	switch to := field.Addr().Interface().(type) {
	case *time.Time:
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return fault.Invalid(name, "must be a time such as 2026-01-02T03:04:05Z")
		}
		*to = at
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > MostListed {
			return fault.Invalid(name, fmt.Sprintf("must be a whole number from 1 to %d", MostListed))
		}
		*to = n
	case *int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return fault.Invalid(name, "must be a whole number from 0")
		}
		*to = n
	case *bool:
		is, err := strconv.ParseBool(text)
		if err != nil {
			return fault.Invalid(name, "must be true or false")
		}
		*to = is
	default:
		field.SetString(text)
	}
	return nil
}

// each visits the fields of a struct, with those of the structs embedded in it.
func each(of reflect.Value, visit func(reflect.StructField, reflect.Value) error) error {
	for _, field := range reflect.VisibleFields(of.Type()) {
		if field.Anonymous {
			continue
		}
		if err := visit(field, of.FieldByIndex(field.Index)); err != nil {
			return err
		}
	}
	return nil
}
