package requestlog

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/mask"
)

// Owner is whose calls they are.
type Owner struct{ Merchant, Mode string }

// Entry is a call as it is kept.
type Entry struct {
	ID         string    `json:"id"` // the request's
	At         time.Time `json:"at"` // when it came
	Ended      time.Time `json:"ended"`
	KeyID      string    `json:"key"`
	KeyName    string    `json:"key_name,omitempty"` // as it was then, "" for none
	Method     string    `json:"method"`
	Operation  string    `json:"operation"` // its path
	Address    string    `json:"from"`
	Agent      string    `json:"agent,omitempty"`
	Status     int       `json:"status"`
	Code       string    `json:"code"` // OK, or the error's
	Message    string    `json:"message,omitempty"`
	Sent       string    `json:"sent,omitempty"`
	Retry      string    `json:"retry,omitempty"`
	Reference  string    `json:"reference,omitempty"`
	DecisionID string    `json:"decision,omitempty"`
	Replayed   bool      `json:"replayed,omitempty"`
	// Asked and Answered are the bodies, masked, as far as they are JSON; "" where a body is longer than MostBody.
	Asked         string `json:"asked,omitempty"`
	Answered      string `json:"answered,omitempty"`
	AskedBytes    int    `json:"asked_bytes"`
	AnsweredBytes int    `json:"answered_bytes"`
}

// Failed reports whether the merchant was answered with an error.
func (e Entry) Failed() bool { return e.Code != ok }

const (
	ok = "OK"
	// MostBody is the longest body that is kept, in bytes.
	MostBody = 16 << 10
	// mostAgent is how much of a User-Agent is kept, and mostMessage of a message.
	mostAgent   = 200
	mostMessage = 1000
)

// Call is a call with its bodies as they came.
type Call struct {
	Entry

	Owner    Owner
	Query    string // of the URL, where that is read in the place of a body
	From     netip.Addr
	Asked    []byte
	Answered []byte
}

// masked is the entry of a call.
func (c *Call) masked() Entry {
	e := c.Entry
	e.At, e.Ended = e.At.UTC().Truncate(time.Microsecond), e.Ended.UTC().Truncate(time.Microsecond)
	e.Address = c.From.String()
	e.Message = mask.Beginning(e.Message, mostMessage)
	e.Agent = mask.Beginning(e.Agent, mostAgent)
	asked := c.Asked
	if len(asked) == 0 && c.Query != "" && c.Method == http.MethodGet {
		asked = fromQuery(c.Query)
	}
	e.Asked, _ = mask.JSON(asked)
	e.Answered, _ = mask.JSON(c.Answered)
	return e
}

// fromQuery is a query as the object that it stands for.
func fromQuery(query string) []byte {
	values, _ := url.ParseQuery(query) // what can be read
	object := map[string]any{}
	for name, all := range values {
		object[name] = all[0]
		if len(all) > 1 {
			object[name] = all
		}
	}
	text, _ := json.Marshal(object) // of texts
	return text
}

// The states of calls.
const (
	Succeeded = "succeeded"
	Failed    = "failed"
)

// terms are what a part may be looked for by: the operations and codes in it, and whether anything has succeeded or failed.
func terms(entries []Entry) string {
	var all []string
	for _, e := range entries {
		state := Succeeded
		if e.Failed() {
			state = Failed
		}
		all = append(all, e.Operation, e.Code, state)
	}
	slices.Sort(all)
	return "\n" + strings.Join(slices.Compact(all), "\n") + "\n"
}

// Filter says which calls are wanted; what is "" says nothing.
type Filter struct {
	State     string // Succeeded or Failed
	Operation string // its path
	Code      string
	ID        string // of the request or its decision, or the reference
	Own       string // the same without references: of what the gateway has made
}

// Term is how the terms of a part hold a text, "" for any.
func Term(text string) string {
	if text == "" {
		return ""
	}
	return "\n" + text + "\n"
}

// Fits reports whether a call is wanted.
func (f Filter) Fits(e Entry) bool {
	return (f.State == "" || (f.State == Failed) == e.Failed()) && (f.Operation == "" || f.Operation == e.Operation) &&
		(f.Code == "" || f.Code == e.Code) && (f.ID == "" || f.ID == e.ID || f.ID == e.Reference || f.ID == e.DecisionID) &&
		(f.Own == "" || f.Own == e.ID || f.Own == e.DecisionID)
}

// Newest orders calls by when they ended, the last first.
func Newest(a, b Entry) int { return cmp.Or(b.Ended.Compare(a.Ended), cmp.Compare(b.ID, a.ID)) }

// pack writes entries for sealing.
func pack(to *flate.Writer, entries []Entry) ([]byte, error) {
	var out bytes.Buffer
	to.Reset(&out)
	err := errors.Join(json.NewEncoder(to).Encode(entries), to.Close())
	return out.Bytes(), err
}

// mostUnpacked bounds what a part may unpack to.
const mostUnpacked = 16 << 20

// unpack reads what a part holds, and tells how many bytes that are.
func unpack(packed []byte) ([]Entry, int, error) {
	raw, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), mostUnpacked))
	var entries []Entry
	if err == nil {
		err = json.Unmarshal(raw, &entries)
	}
	if err != nil {
		return nil, len(raw), fmt.Errorf("requestlog: these are no calls: %w", err)
	}
	return entries, len(raw), nil
}
