// Command quick is a plugin that answers a query at once and asks no upstream, so that
// what is measured of a request is the gateway and its hop. It must not move money.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"net/http"
	"os"

	"github.com/seed-f006e74d/gerbang/sdk"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

//go:embed manifest.json
var manifestJSON []byte

func main() {
	if len(os.Args) > 1 && os.Args[1] == "sandbox" {
		program := kit.Program{Provider: "quick", Build: func(env *kit.Env) (kit.Upstream, error) { return upstream{}, env.Begin() }}
		os.Exit(program.Main(os.Args[2:]))
	}
	sdk.Serve(manifestJSON, sdk.Handlers{Calls: map[string]func(context.Context, sdk.Call) sdk.Result{"/quick/rate": rate}})
}

func rate(_ context.Context, call sdk.Call) sdk.Result {
	var asked struct {
		Currency string `json:"currency"`
	}
	if err := json.Unmarshal(call.Body, &asked); err != nil {
		return sdk.DidNotSend(sdk.BlameNone, "the request can't be read")
	}
	return sdk.Finished("", map[string]any{"currency": asked.Currency, "rupiah": 16_000})
}

// upstream is one that nobody asks.
type upstream struct{}

func (upstream) Handler() http.Handler                   { return http.NotFoundHandler() }
func (upstream) Pay(kit.PayRequest) (kit.Receipt, error) { return kit.Receipt{}, kit.ErrUnknown }
func (upstream) Describe(string) kit.Description         { return kit.Description{} }
func (upstream) Connect(_, account, token, _ string) kit.Connection {
	return kit.Connection{Account: account, CallbackToken: token, Credentials: map[string]string{"api_key": account}}
}
