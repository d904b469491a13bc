package edge_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
)

func TestFinishedAnswersArePackedForWhoTakesThem(t *testing.T) {
	t.Parallel()
	h := buildShop(t)
	data := `[{"name":"` + strings.Repeat("Pulsa ", 500) + `"}]`
	want := `{"success":true,"data":` + data + "}\n"
	for name, c := range map[string]struct {
		kept    bool
		accepts string
		packed  bool
		varies  string
	}{
		"taken":                    {true, "br, gzip;q=0.8", true, "Accept-Encoding"},
		"in capitals":              {true, "GZIP", true, "Accept-Encoding"},
		"not taken":                {true, "identity", false, "Accept-Encoding"},
		"refused":                  {true, "gzip;q=0, identity", false, "Accept-Encoding"},
		"refused in full":          {true, "gzip; q=0.00", false, "Accept-Encoding"},
		"for one caller alone":     {false, "gzip", false, ""},
		"nothing said of packings": {true, "", false, "Accept-Encoding"},
	} {
		h.run = func(lifecycle.Request) (lifecycle.Answer, error) {
			return lifecycle.Answer{Finished: catalog.Finish([]byte(data), c.kept)}, nil
		}
		got := h.send(t, http.MethodPost, listPath, `{"secret_key":"`+h.key+`"}`, header{"Accept-Encoding", c.accepts})
		text := got.text
		if packed := got.Header.Get("Content-Encoding") == "gzip"; packed != c.packed {
			t.Errorf("%s: packed %t", name, packed)
			continue
		} else if packed {
			reader, err := gzip.NewReader(bytes.NewReader([]byte(got.text)))
			if err != nil {
				t.Fatal(err)
			}
			unpacked, err := io.ReadAll(reader)
			if err != nil || len(got.text) > len(want)/2 {
				t.Errorf("%s: %d bytes of %d, %v", name, len(got.text), len(want), err)
			}
			text = string(unpacked)
		}
		if text != want || got.Header.Get("Vary") != c.varies || got.Header.Get("Cache-Control") != "no-store" || got.Header.Get("ETag") != "" {
			t.Errorf("%s: %v %.60s", name, got.Header, text)
		}
	}
}

func TestSmallAnswersAreNotPacked(t *testing.T) {
	t.Parallel()
	if f := catalog.Finish([]byte(`[]`), true); f.Gzip() != nil {
		t.Errorf("%q is packed", f.Plain)
	}
}

func TestAGETMayHaveTheAnswerAlready(t *testing.T) {
	t.Parallel()
	h := buildShop(t)
	answers := func(data string) {
		h.run = func(lifecycle.Request) (lifecycle.Answer, error) {
			return lifecycle.Answer{Finished: catalog.Finish([]byte(data), true)}, nil
		}
	}
	answers(`["one"]`)
	first := h.send(t, http.MethodGet, h.with(), "")
	etag := first.Header.Get("ETag")
	if first.StatusCode != http.StatusOK || !strings.HasPrefix(etag, `W/"`) || first.Header.Get("Cache-Control") != "private, no-cache" {
		t.Fatalf("%d %v", first.StatusCode, first.Header)
	}
	for _, given := range []string{etag, `"x", ` + etag, strings.TrimPrefix(etag, "W/"), "*"} {
		again := h.send(t, http.MethodGet, h.with(), "", header{"If-None-Match", given})
		if again.StatusCode != http.StatusNotModified || again.text != "" || again.Header.Get("ETag") != etag {
			t.Errorf("%s: %d %v %q", given, again.StatusCode, again.Header, again.text)
		}
	}
	answers(`["two"]`)
	if other := h.send(t, http.MethodGet, h.with(), "", header{"If-None-Match", etag}); other.StatusCode != http.StatusOK || other.Header.Get("ETag") == etag {
		t.Errorf("another answer: %d %v", other.StatusCode, other.Header)
	}
	answers(`["one"]`)
	if posted := h.send(t, http.MethodPost, listPath, `{"secret_key":"`+h.key+`"}`, header{"If-None-Match", etag}); posted.StatusCode != http.StatusOK {
		t.Errorf("a POST: %d", posted.StatusCode)
	}
}
