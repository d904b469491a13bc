package merchants

import (
	"slices"
	"strings"

	firstpayment "github.com/seed-f006e74d/gerbang/deploy/examples/first-payment"
	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// step is one of a merchant's first hour. It is done when the gateway has seen it.
type step struct {
	Text, How string
	Done      bool
	Path      string // where it is done, "" where this person may not
	Key       string // the name of the key whose secret the lines take; not in them, since shells read it
	Lines     string // to paste into a shell, in the language that was chosen
	Verify    string // where the receiver is asked, "" where it can't be
}

// code is a language in which steps are shown: how it runs a program, % in place of the file, which has its ending.
type code struct{ Name, Ending, Run string }

var codes = []code{
	{"curl", "sh", ""}, {"Go", "go", "go run %"}, {"Node", "mjs", "node %"}, {"PHP", "php", "php %"}, {"Python", "py", "python3 %"},
}

// codeOf is the language that the page is asked for.
func codeOf(r *room) code {
	return codes[max(0, slices.IndexFunc(codes, func(of code) bool { return of.Name == r.Form("code") }))]
}

// linesOf is a program of the examples as it is pasted: written to a file and run there, or itself where it is one for the
// shell.
func linesOf(name string, in code) (string, error) {
	file, run := name+"."+in.Ending, in.Run
	program, err := firstpayment.Files.ReadFile(file)
	text := strings.TrimPrefix(string(program), "//go:build ignore\n\n")
	if run == "" || err != nil {
		return text, err
	}
	if file == "receive.php" {
		run = "php -S 0.0.0.0:3000 %"
	}
	return "cat > " + file + " <<'END'\n" + text + "END\n" + strings.ReplaceAll(run, "%", file) + "\n", nil
}

// seen is what the gateway has seen of a merchant's first hour.
type seen struct {
	key      string // the name of a test key of its own, "" for none
	receiver string // of test callbacks
	paid     bool   // a payment of test mode
	verified bool   // by the receiver
	live     bool   // a connection
	owners   int
}

func (c *Console) seenOf(r *room, m adminapi.Merchant) (of seen, err error) {
	ctx := r.Request.Context()
	uses, err := c.deps.Records.KeyUses(ctx, r.Member.MerchantID)
	if err != nil {
		return of, err
	}
	for _, k := range m.Keys {
		// The keys that a merchant begins with were shown to the operator who made it.
		own := k.CreatedAt.After(m.CreatedAt) || slices.ContainsFunc(uses, func(u tenants.KeyUse) bool { return string(u.KeyID) == k.KeyID })
		if own && k.Usable && k.Mode == string(tenants.Test) {
			of.key = k.Name
		}
	}
	of.receiver = setupOf(m, string(tenants.Test)).URL
	of.live = slices.ContainsFunc(m.Connections, func(of adminapi.Connection) bool { return of.Mode == string(tenants.Live) })
	if of.paid, err = c.hasPaid(r); err != nil {
		return of, err
	}
	if of.verified, err = c.hasVerified(r, of.receiver); err != nil {
		return of, err
	}
	people, err := c.deps.SignIn.Members(ctx, r.Member.MerchantID)
	for _, p := range people {
		if p.Role == tenants.RoleOwner {
			of.owners++
		}
	}
	return of, err
}

// steps are what a merchant's people do first, until all is done. They are of test mode where nothing else is said, whatever
// the mode of the page.
func (c *Console) steps(r *room, m adminapi.Merchant) ([]step, error) {
	of, err := c.seenOf(r, m)
	if err != nil || of.key != "" && of.paid && of.verified && of.live && of.owners > 1 {
		return nil, err
	}
	pay, err := linesOf("pay", codeOf(r))
	if err != nil {
		return nil, err
	}
	receive, err := linesOf("receive", codeOf(r))
	if err != nil {
		return nil, err
	}
	path := func(mode tenants.Mode, place string, may tenants.Permission) string {
		if !r.Member.Role.May(may) {
			return ""
		}
		return "/" + r.id() + "/" + string(mode) + place
	}
	verify := ""
	if of.receiver != "" {
		verify = path(tenants.Test, "/callbacks/verify", tenants.MayCallback)
	}
	return []step{
		{
			Text: "Make a test key", How: "It is shown once. Keep it on your server.",
			Done: of.key != "", Path: path(tenants.Test, "/keys/new", tenants.MayKeys),
		},
		{
			Text: "Make a first payment, and pay it", How: "Open the checkout_url of the answer: the payment's control room pays it.",
			Done: of.paid, Path: path(tenants.Test, "/payments", tenants.MayLook), Key: of.key,
			Lines: "export API=" + c.config.APIURL + " MERCHANT=" + r.id() + " KEY=sk_test_…\n" + pay,
		},
		{
			Text: "Receive a callback, and verify it", How: "Rotate the callback secret to see it, set your receiver's URL, and have the gateway ask it: it must take what is signed, and refuse what is forged.",
			Done: of.verified, Path: path(tenants.Test, "/callbacks", tenants.MayCallback), Verify: verify,
			Lines: "export CALLBACK_SECRET=whsec_…\n" + receive,
		},
		{
			Text: "Connect a provider in live mode", How: "With the credentials that your provider gave you. Test mode needs none.",
			Done: of.live, Path: path(tenants.Live, "/connections", tenants.MayConnect),
		},
		{
			Text: "Invite a second owner", How: "Who loses the only phone loses the account.",
			Done: of.owners > 1, Path: path(r.Mode, "/members", tenants.MayMembers),
		},
	}, nil
}

// hasPaid tells whether a payment of test mode is paid.
func (c *Console) hasPaid(r *room) (bool, error) {
	found, err := adminapi.ListMovements.Call(r.Request.Context(), r.admin, adminapi.MovementFilter{
		Merchant: r.id(), Mode: string(tenants.Test), Kind: string(manifest.Payment), Status: "PAID", Limit: 1,
	})
	return len(found.Movements) > 0, err
}

// hasVerified tells whether the receiver of test callbacks was seen to verify them.
func (c *Console) hasVerified(r *room, receiver string) (bool, error) {
	if receiver == "" {
		return false, nil
	}
	entries, err := adminapi.ListAudit.Call(r.Request.Context(), r.admin, adminapi.AuditFilter{Merchant: r.id(), AuditSelection: adminapi.AuditSelection{Action: adminapi.ActionVerified, Limit: pageOf}})
	return slices.ContainsFunc(entries, func(e store.Audit) bool { return e.Detail == "by "+receiver+", mode "+string(tenants.Test) }), err
}

// verifyCallback asks the receiver of callbacks whether it verifies them, and shows how it answered.
func (c *Console) verifyCallback(r *room) error {
	found, err := adminapi.VerifyCallback.Call(r.Request.Context(), r.admin, adminapi.TestOrder{Merchant: r.id(), Mode: string(r.Mode), URL: r.Form("url")})
	if err != nil {
		return err
	}
	return r.Show("verified.html", r.T("Does it verify?"), map[string]any{"Room": r, "Found": found, "Back": r.Path("/callbacks")})
}
