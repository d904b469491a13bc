package main

import (
	"bytes"
	"encoding"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/app"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/version"
	"github.com/seed-f006e74d/gerbang/sdk/conformance"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/qris"
	"github.com/seed-f006e74d/gerbang/tenants"
)

var update = flag.Bool("update", false, "write deploy/COMMANDS.md")

const referencePage = "../../../deploy/COMMANDS.md"

// prints is what each command prints with --json: a value of its type, or a text where that is no answer of its own.
var prints = map[string]any{
	"init": struct {
		Config  string   `json:"config"`
		Plugins []pinned `json:"plugins"`
	}{},
	"check": []app.Finding{}, "doctor": []app.Finding{},
	"serve": "nothing: its log goes to standard error",
	"dev":   "the addresses and keys, as the ready file has them",
	"migrate": struct {
		Migrations string `json:"migrations"`
	}{},
	"version": struct {
		version.Build
		Schema     int64  `json:"schema"`
		Migrations string `json:"migrations"`
	}{},
	"apply": plan{}, "diff": plan{}, "export": "a list of the documents",
	"completion": struct {
		Shell  string `json:"shell"`
		Script string `json:"script"`
	}{},

	"merchant invite": app.Invited{}, "merchant invited": []adminapi.Invitation{}, "merchant revoke-invitation": []adminapi.Invitation{},
	"merchant create": adminapi.CreatedMerchant{}, "merchant suspend": adminapi.Merchant{}, "merchant resume": adminapi.Merchant{},
	"merchant tier": adminapi.Merchant{}, "merchant label": adminapi.Merchant{}, "merchant limit": []adminapi.Limit{},
	"merchant credit": adminapi.Adjustment{}, "merchant debit": adminapi.Adjustment{}, "merchant list": []adminapi.Merchant{},
	"merchant show": adminapi.Merchant{}, "merchant audit": []store.Audit{},

	"operator invite": app.Invited{}, "operator token create": adminapi.CreatedOperatorToken{}, "operator token list": []adminapi.OperatorToken{},
	"operator token rotate": adminapi.CreatedOperatorToken{}, "operator token revoke": []adminapi.OperatorToken{},
	"person recover": app.Recovered{},
	"person remove": struct {
		Removed string `json:"removed"`
	}{},

	"key create": adminapi.CreatedKey{}, "key rotate": adminapi.CreatedKey{}, "key rename": adminapi.Key{}, "key revoke": adminapi.Key{},
	"connection set": adminapi.Connection{}, "connection fields": []catalog.Ask{}, "connection list": []adminapi.Connection{},
	"connection pause": adminapi.Paused{}, "connection resume": adminapi.Paused{}, "connection remove": adminapi.Merchant{},
	"list show": []adminapi.ListSize{}, "list find": []adminapi.ListEntry{}, "list add": []adminapi.ListEntry{}, "list import": imported{}, "list remove": []adminapi.ListEntry{},
	"provider pause": adminapi.Paused{}, "provider resume": adminapi.Paused{}, "transfers pause": adminapi.Paused{}, "transfers resume": adminapi.Paused{},

	"callback list": []adminapi.Callback{}, "callback show": adminapi.Callback{}, "callback resend": adminapi.Resent{}, "callback test": adminapi.SentTest{},
	"callback verify": adminapi.VerifiedCallback{}, "callback url": adminapi.CallbackSetup{}, "callback secret": adminapi.ChangedSecret{},
	"request list": adminapi.RequestLog{}, "request show": adminapi.LoggedRequest{}, "listen": forwarded{}, "quota show": adminapi.Quotas{},

	"ledger check": adminapi.LedgerCheck{}, "ledger balance": adminapi.Balance{}, "ledger statement": []adminapi.AccountEntry{},
	"audit list": []store.Audit{}, "audit export": "lines of `store.AuditLine`, with or without it", "audit verify": store.AuditReport{},
	"ledger waiting": []adminapi.Adjustment{}, "ledger approve": adminapi.Adjustment{}, "ledger reject": adminapi.Adjustment{},
	"payment refund": adminapi.Refunded{}, "find": adminapi.FindResult{}, "waiting": adminapi.Waiting{}, "traffic": adminapi.Traffic{},
	"exception list": []adminapi.Exception{}, "exception resolve": adminapi.Resolution{},
	"statement list": []adminapi.StatementLine{}, "statement assign": adminapi.Assigned{},
	"recovery show": adminapi.Recovery{},
	"recovery open": struct {
		Open bool `json:"open"`
	}{},
	"keyset create": struct {
		File string `json:"keyset_file"`
	}{},
	"keyset rotate": struct {
		Key      tenants.KeyNumber `json:"key"`
		Prepared bool              `json:"prepared"`
	}{},
	"keyset list": []adminapi.KeyUse{}, "keyset reseal": adminapi.ResealPage{},
	"keyset prune": struct {
		Removed []tenants.KeyNumber `json:"removed"`
	}{},

	"plugin list": []adminapi.Plugin{}, "plugin show": adminapi.Plugin{}, "plugin new": []string{},
	"plugin check": struct {
		Name       string `json:"name"`
		Version    string `json:"version"`
		Implements string `json:"implements,omitempty"`
		Operations int    `json:"operations"`
		Digest     string `json:"manifest_digest"`
	}{},
	"plugin test": []conformance.Verdict{},
	"plugin approve": struct {
		adminapi.PluginApproval
		Change *adminapi.PluginChange `json:"change,omitempty"`
	}{},
	"plugin confirm": adminapi.PluginApproval{}, "plugin approvals": []adminapi.PluginApproval{}, "plugin activate": adminapi.PluginChange{},
	"plugin rollback": adminapi.PluginChange{}, "plugin remove": adminapi.PluginChange{},
	"plugin restart": struct {
		Restarted string `json:"restarted"`
	}{},
	"plugin digest": pinned{},

	"policy export": struct {
		Dir     string `json:"dir"`
		Version string `json:"version"`
	}{},
	"policy test": testedPolicy{}, "policy try": adminapi.PolicyAnswer{}, "policy schema": "the JSON Schema", "policy push": pushed{},
	"policy list": []adminapi.PolicyVersion{}, "policy show": adminapi.PolicyVersion{}, "policy diff": adminapi.PolicyDiff{},
	"policy activate": adminapi.PolicyActivation{}, "policy impact": adminapi.Impact{}, "policy rollback": adminapi.PolicyActivation{},
	"replica list": []adminapi.Replica{}, "qris inspect": []qris.Field{},
}

func init() {
	for _, kind := range []string{"payment", "refund", "collection", "transfer", "order"} {
		prints[kind+" list"], prints[kind+" show"], prints[kind+" override"] = adminapi.MovementList{}, adminapi.Movement{}, adminapi.Overridden{}
	}
}

// holdPrinted reads what a command has printed with --json as the reference says that it is.
func holdPrinted(t *testing.T, printed []byte, args []string) {
	t.Helper()
	words := slices.DeleteFunc(slices.Clone(args), func(word string) bool { return strings.HasPrefix(word, "-") })
	for n := len(words); n > 0; n-- {
		declared, known := prints[strings.Join(words[:n], " ")]
		if _, text := declared.(string); text {
			return
		}
		if known {
			decoder := json.NewDecoder(bytes.NewReader(printed))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(reflect.New(reflect.TypeOf(declared)).Interface()); err != nil {
				t.Errorf("gerbang %s printed what the reference does not say (%v): %s", strings.Join(args, " "), err, printed)
			}
			return
		}
	}
}

// TestReference holds deploy/COMMANDS.md to the table of commands; -update writes it.
func TestReference(t *testing.T) {
	t.Parallel()
	parser, err := (&program{}).parser(t.Context(), &commands{})
	if err != nil {
		t.Fatal(err)
	}
	want := reference(t, parser)
	if *update {
		if err := os.WriteFile(referencePage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(referencePage); err != nil || string(got) != want {
		t.Errorf("deploy/COMMANDS.md is not what the commands are: go test ./gateway/cmd/gerbang -run TestReference -update (%v)", err)
	}
}

func reference(t *testing.T, parser *kong.Kong) string {
	t.Helper()
	var page strings.Builder
	page.WriteString(`# Commands

Made from the table of commands by ` + "`go test ./gateway/cmd/gerbang -run TestReference -update`" + `; [the handbook](README.md) says when to use which. Every command takes

` + "| flag | |\n| --- | --- |\n" + rowsOf(flagsOf(parser.Model.Node)...) + `
| exit code | |
| --- | --- |
`)
	for _, code := range slices.Sorted(maps.Keys(exitTexts)) {
		fmt.Fprintf(&page, "| %d | %s |\n", code, exitTexts[code])
	}
	page.WriteString(`
With ` + "`--json`" + ` the result stands on standard output, and an error as the last line of standard error: one object with ` + "`message`, `exit_code`, and\n`error_code`, `request_id` and `errors`" + ` where the gateway answered.

A time is ` + "`2026-01-02T03:04:05Z`, or with another zone, `2026-01-02T10:04:05+07:00`; without one it is this machine's, and `2026-01-02`" + ` is the first moment of
that day. ` + "`90m`, `24h` or `7d`" + ` in its place is so long ago. How long something lasts is written alike.
`)
	shapes := map[string]reflect.Type{}
	group := ""
	for _, leaf := range parser.Model.Leaves(true) {
		name := strings.TrimPrefix(leaf.FullPath(), "gerbang ")
		if first, _, _ := strings.Cut(name, " "); first != group {
			group = first
			page.WriteString("\n## " + group + "\n")
		}
		fmt.Fprintf(&page, "\n### gerbang %s\n\n%s\n\n```\ngerbang %s\n```\n", name, leaf.Help, leaf.Summary())
		if rows := rowsOf(append(slices.Clone(leaf.Positional), flagsOf(leaf)...)...); rows != "" {
			page.WriteString("\n| argument or flag | |\n| --- | --- |\n" + rows)
		}
		printed, known := prints[name]
		if !known {
			t.Errorf("%s: reference_test.go does not say what it prints", name)
			continue
		}
		if text, is := printed.(string); is {
			page.WriteString("\nPrints " + text + ".\n")
		} else if of := reflect.TypeOf(printed); of.Name() == "" && of.Kind() == reflect.Struct {
			page.WriteString("\nPrints an object:\n\n" + fieldsOf(of, shapes))
		} else {
			page.WriteString("\nPrints " + shapeText(of, shapes) + ".\n")
		}
	}
	page.WriteString("\n## What is printed with --json\n\nThe admin API's own answers. A field of `?` is left out where it is empty.\n")
	for done := map[string]bool{}; ; {
		next := slices.Sorted(maps.Keys(shapes))
		next = slices.DeleteFunc(next, func(name string) bool { return done[name] })
		if len(next) == 0 {
			break
		}
		for _, name := range next { // what these name comes in another round
			done[name] = true
			fieldsOf(shapes[name], shapes)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		page.WriteString("\n### " + name + "\n\n" + fieldsOf(shapes[name], shapes))
	}
	return page.String()
}

func flagsOf(node *kong.Node) []*kong.Value {
	var values []*kong.Value
	for _, f := range node.Flags {
		if !f.Hidden {
			values = append(values, f.Value)
		}
	}
	return values
}

func rowsOf(values ...*kong.Value) string {
	var rows strings.Builder
	for _, v := range values {
		name := v.Summary()
		if v.Flag != nil {
			name = v.Flag.String()
		}
		must := ""
		if v.Flag != nil && v.Required {
			must = " Required."
		}
		fmt.Fprintf(&rows, "| `%s` | %s%s |\n", name, strings.ReplaceAll(v.Help, "|", "\\|"), must)
	}
	return rows.String()
}

// fieldsOf are the fields of a struct as rows, also those of what it embeds.
func fieldsOf(of reflect.Type, shapes map[string]reflect.Type) string {
	rows := "| field | |\n| --- | --- |\n"
	for _, field := range reflect.VisibleFields(of) {
		name, rest, tagged := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || field.Anonymous && !tagged && name == "" || !field.IsExported() {
			continue
		}
		if name == "" {
			name = field.Name
		}
		if strings.Contains(rest, "omit") {
			name += "?"
		}
		rows += "| `" + name + "` | " + shapeText(field.Type, shapes) + " |\n"
	}
	return rows
}

// shapeText says what a value is, and adds what needs a table of its own.
func shapeText(of reflect.Type, shapes map[string]reflect.Type) string {
	switch {
	case of.Kind() == reflect.Pointer:
		return shapeText(of.Elem(), shapes)
	case of == reflect.TypeFor[time.Time]():
		return "time"
	case of == reflect.TypeFor[time.Duration]():
		return "nanoseconds"
	case of == reflect.TypeFor[money.Amount]():
		return "whole rupiah"
	case of == reflect.TypeFor[json.RawMessage]():
		return "any JSON"
	case of.Implements(reflect.TypeFor[encoding.TextMarshaler]()), of.Kind() == reflect.String:
		return "text"
	case of.Kind() == reflect.Bool:
		return "true or false"
	case of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Uint8:
		return "text, in base64"
	case of.Kind() == reflect.Slice:
		return "list of " + shapeText(of.Elem(), shapes)
	case of.Kind() == reflect.Map:
		return "object of " + shapeText(of.Elem(), shapes) + " by name"
	case of.Kind() == reflect.Interface:
		return "any JSON"
	case of.Kind() == reflect.Struct && of.Name() != "":
		name := strings.TrimPrefix(strings.TrimPrefix(of.String(), "adminapi."), "main.")
		shapes[name] = of
		return "[" + name + "](#" + strings.ToLower(strings.ReplaceAll(name, ".", "")) + ")"
	case of.Kind() == reflect.Struct:
		var names []string
		for _, field := range reflect.VisibleFields(of) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			names = append(names, "`"+name+"`")
		}
		return "object of " + strings.Join(names, ", ")
	}
	return "number"
}
