package dev

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/template"
)

// ready is the content of the ready file.
type ready struct {
	APIURL      string `json:"api_url"`
	ConsoleURL  string `json:"console_url"`
	SandboxURL  string `json:"sandbox_url"`
	DatabaseURL string `json:"database_url"`
	// Links by which a person signs in to each console for the first time, good once.
	MerchantsConsoleURL string     `json:"merchants_console_url"`
	OwnerURL            string     `json:"owner_url"`
	OperatorURL         string     `json:"operator_url"`
	Engine              string     `json:"engine"`
	AdminToken          string     `json:"admin_token"`
	Merchants           []merchant `json:"merchants"`
}

// Opening is each merchant's first balance, as people write it.
func (ready) Opening() string { return opening.Format() }

func (t *tree) addresses() ready {
	return ready{
		APIURL: t.gateway.APIURL(), ConsoleURL: t.gateway.ConsoleURL(), SandboxURL: t.doorURL(),
		MerchantsConsoleURL: t.gateway.MerchantsConsoleURL(), OwnerURL: t.ownerURL, OperatorURL: t.operatorURL,
		DatabaseURL: t.database.URL(), Engine: t.gateway.Engine(), AdminToken: t.state.AdminToken, Merchants: t.state.Merchants,
	}
}

// writeReadyFile tells other programs that everything answers, and at which addresses.
func (t *tree) writeReadyFile() error {
	if t.ReadyFile == "" {
		return nil
	}
	content, err := json.MarshalIndent(t.addresses(), "", "  ")
	if err != nil {
		return err
	}
	return writeFile(t.ReadyFile, append(content, '\n'))
}

// forget removes a ready file, if there is one.
func forget(path string) error {
	if path == "" {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

var bannerText = template.Must(template.New("banner").Parse(`
Gerbang is running on {{.Engine}}, with simulated providers. Ctrl-C stops it.

  API      {{.APIURL}}      (what merchants call; {{.APIURL}}/docs shows it, with guides)
  Console  {{.ConsoleURL}}      (operators; export GERBANG_ADMIN_URL={{.ConsoleURL}} GERBANG_ADMIN_TOKEN={{.AdminToken}})
  Sandbox  {{.SandboxURL}}      (pay as a payer would, inject faults)
  Inbox    {{.SandboxURL}}/inbox      (a merchant's server: receives callbacks, verifies and shows them)
  Mails    {{.SandboxURL}}/mails      (receipts for payers; they are caught and go no further)

  The consoles, for people. Each link is good once, for 7 days; a restart replaces it.
    merchants  {{.OwnerURL}}
    operators  {{.OperatorURL}}
{{range .Merchants}}
  {{.MerchantID}} (tier {{.Tier}})
    live key  {{.LiveKey}}
    test key  {{.TestKey}}
{{end}}
  Each began with {{.Opening}} in both modes; gerbang ledger balance MERCHANT shows what is left.

Try it, in another terminal:
{{with index .Merchants 0}}
  export GERBANG_URL={{$.APIURL}} SANDBOX={{$.SandboxURL}} GERBANG_KEY={{.TestKey}} GERBANG_MERCHANT={{.MerchantID}} GERBANG_CALLBACK_SECRET={{.TestCallbackSecret}}

  # a payment with a raw QR string
  curl -s {{$.APIURL}}/payments/create -d '{"secret_key":"'$GERBANG_KEY'","merchant_id":"'$GERBANG_MERCHANT'","type":"qris","amount":25000,"payer_email":"payer@example.com","external_id":"order-1"}'

  # a payment with a checkout page: open its checkout_url in a browser; its callback comes to the inbox
  curl -s {{$.APIURL}}/payments/create -H "X-Callback-URL: {{$.SandboxURL}}/inbox" -d '{"secret_key":"'$GERBANG_KEY'","merchant_id":"'$GERBANG_MERCHANT'","amount":50000,"payer_email":"payer@example.com","external_id":"order-2","description":"Two coffees"}'

  # pay the second as its payer would, and ask for its status
  curl -s {{$.SandboxURL}}/pay -d '{"url":"'$(curl -s {{$.APIURL}}/payments/create -H "X-Callback-URL: {{$.SandboxURL}}/inbox" -d '{"secret_key":"'$GERBANG_KEY'","merchant_id":"'$GERBANG_MERCHANT'","amount":50000,"payer_email":"payer@example.com","external_id":"order-2","description":"Two coffees"}' | sed 's/.*"checkout_url":"\([^"]*\)".*/\1/')'"}'
  curl -s {{$.APIURL}}/payments/status -d '{"secret_key":"'$GERBANG_KEY'","external_id":"order-2"}'

  # airtime from the prepaid balance, and its status
  curl -s {{$.APIURL}}/ppob/order -H "X-Callback-URL: {{$.SandboxURL}}/inbox" -d '{"secret_key":"'$GERBANG_KEY'","sku":"xld10","target":"087800001230","ref_id":"airtime-1"}'
  curl -s {{$.APIURL}}/ppob/status -d '{"secret_key":"'$GERBANG_KEY'","ref_id":"airtime-1"}'

  # a QR code for one sale, made from the shop's printed code
  curl -s {{$.APIURL}}/wallet2/create -d '{"secret_key":"'$GERBANG_KEY'","amount":18000,"payer_email":"payer@example.com","external_id":"sale-1"}'
{{end}}
`))

// banner prints all addresses, with lines to paste.
func (t *tree) banner() error {
	if t.JSON {
		return json.NewEncoder(t.Out).Encode(t.addresses())
	}
	var text strings.Builder
	if err := bannerText.Execute(&text, t.addresses()); err != nil {
		return err
	}
	_, err := fmt.Fprint(t.Out, text.String())
	return err
}
