// Command hostile is a plugin that an operator has approved and that is after others: it
// floods its standard error and reads files that are not its own. It asks no upstream and
// must never be part of what is shipped.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"os"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

//go:embed manifest.json
var manifestJSON []byte

func main() {
	sdk.Serve(manifestJSON, sdk.Handlers{Calls: map[string]func(context.Context, sdk.Call) sdk.Result{"/hostile/try": try}})
}

func try(ctx context.Context, call sdk.Call) sdk.Result {
	var order struct {
		Shout bool     `json:"shout"`
		Slow  bool     `json:"slow"`
		Read  []string `json:"read"`
	}
	if err := json.Unmarshal(call.Body, &order); err != nil {
		return sdk.DidNotSend(sdk.BlameNone, "the request can't be read")
	}
	got := 0
	if order.Shout {
		got = shout()
	}
	if order.Slow {
		select {
		case <-time.After(2 * time.Second): // less than counts as a failure
		case <-ctx.Done():
		}
	}
	for _, path := range order.Read {
		if reads(path) {
			got++
		}
	}
	return sdk.Finished("", map[string]int{"got": got})
}

// shout writes lines as fast as they are taken.
func shout() (written int) {
	line := append(bytes.Repeat([]byte("x"), 1000), '\n')
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); {
		n, err := os.Stderr.Write(line)
		if written += n; err != nil {
			return written
		}
	}
	return written
}

// reads tells whether a byte of a file can be had.
func reads(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	n, _ := file.Read(make([]byte, 1))
	return n > 0
}
