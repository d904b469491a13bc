package catalog

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"sync"
)

// Finished is a query's success as callers get it, to the last byte. It is shared and
// never changes: what was made of an answer once is sent to all who are answered so.
type Finished struct {
	Plain []byte

	kept    bool // for more than one caller
	naming  sync.Once
	name    string
	packing sync.Once
	packed  []byte
}

// smallest is from where on an answer is worth packing.
const smallest = 1 << 10

// Finish makes the success that tells data, which is compact JSON. Kept says that it
// will be sent again: only then it is worth to pack it.
func Finish(data []byte, kept bool) *Finished {
	const head, tail = `{"success":true,"data":`, "}\n"
	plain := make([]byte, 0, len(head)+len(data)+len(tail))
	plain = append(append(append(plain, head...), data...), tail...)
	return &Finished{Plain: plain, kept: kept}
}

// ETag names the content, whatever its encoding.
func (f *Finished) ETag() string {
	f.naming.Do(func() {
		sum := sha256.Sum256(f.Plain)
		f.name = `W/"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`
	})
	return f.name
}

// Gzip is the success packed, nil where that is not worth it.
func (f *Finished) Gzip() []byte {
	if !f.kept || len(f.Plain) < smallest {
		return nil
	}
	f.packing.Do(func() { f.packed = packed(f.Plain) })
	return f.packed
}

func packed(plain []byte) []byte {
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	_, _ = writer.Write(plain) // a buffer takes everything
	_ = writer.Close()
	return out.Bytes()
}
