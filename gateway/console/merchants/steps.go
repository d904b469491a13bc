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
	Lines     string // to paste into a shell, in the language that was chosen
	Verify    bool   // the receiver can be asked now
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

// steps are what a merchant's people do first, until all is done.
func (c *Console) steps(r *room, m adminapi.Merchant) ([]step, error) {
	ctx := r.Request.Context()
	in := codeOf(r)
	pay, err := linesOf("pay", in)
	if err != nil {
		return nil, err
	}
	receive, err := linesOf("receive", in)
	if err != nil {
		return nil, err
	}
	uses, err := c.deps.Records.KeyUses(ctx, r.Member.MerchantID)
	if err != nil {
		return nil, err
	}
	// The keys that a merchant begins with were shown to the operator who made it.
	own := slices.IndexFunc(m.Keys, func(k adminapi.Key) bool {
		return k.Usable && k.Mode == string(tenants.Test) &&
			(k.CreatedAt.After(m.CreatedAt) || slices.ContainsFunc(uses, func(u tenants.KeyUse) bool { return string(u.KeyID) == k.KeyID }))
	})
	key := "…"
	if own >= 0 {
		key = m.Keys[own].Name
	}
	paid, err := c.hasPaid(r)
	if err != nil {
		return nil, err
	}
	receiver := setupOf(m, string(tenants.Test)).URL
	verified, err := c.hasVerified(r, receiver)
	if err != nil {
		return nil, err
	}
	people, err := c.deps.SignIn.Members(ctx, r.Member.MerchantID)
	if err != nil {
		return nil, err
	}
	owners := 0
	for _, p := range people {
		if p.Role == tenants.RoleOwner {
			owners++
		}
	}
	path := func(mode tenants.Mode, place string, may tenants.Permission) string {
		if !r.Member.Role.May(may) {
			return ""
		}
		return "/" + r.id() + "/" + string(mode) + place
	}
	all := []step{
		{
			Text: "Make a test key", How: "It is shown once. Keep it on your server.",
			Done: own >= 0, Path: path(tenants.Test, "/keys/new", tenants.MayKeys),
		},
		{
			Text: "Make a first payment, and pay it", How: "Open the checkout_url of the answer: the payment's control room pays it.",
			Done: paid, Path: path(tenants.Test, "/payments", tenants.MayLook),
			Lines: "export API=" + c.config.APIURL + " MERCHANT=" + r.id() + "\nexport KEY=sk_test_… # " + key + "\n" + pay,
		},
		{
			Text: "Receive a callback, and verify it", How: "Rotate the callback secret to see it, set your receiver's URL, and have the gateway ask it: it must take what is signed, and refuse what is forged.",
			Done: verified, Path: path(tenants.Test, "/callbacks", tenants.MayCallback), Verify: receiver != "" && r.Member.Role.May(tenants.MayCallback),
			Lines: "export CALLBACK_SECRET=whsec_…\n" + receive,
		},
		{
			Text: "Connect a provider in live mode", How: "With the credentials that your provider gave you. Test mode needs none.",
			Done: slices.ContainsFunc(m.Connections, func(of adminapi.Connection) bool { return of.Mode == string(tenants.Live) }), Path: path(tenants.Live, "/connections", tenants.MayConnect),
		},
		{
			Text: "Invite a second owner", How: "Who loses the only phone loses the account.",
			Done: owners > 1, Path: path(r.Mode, "/members", tenants.MayMembers),
		},
	}
	if !slices.ContainsFunc(all, func(s step) bool { return !s.Done }) {
		return nil, nil
	}
	return all, nil
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
	entries, err := adminapi.ListAudit.Call(r.Request.Context(), r.admin, adminapi.AuditFilter{Merchant: r.id(), Action: adminapi.ActionVerified, Limit: pageOf})
	return slices.ContainsFunc(entries, func(e store.Audit) bool { return strings.HasPrefix(e.Detail, "by "+receiver+",") }), err
}

// verifyCallback asks the receiver of callbacks whether it verifies them, and shows how it answered.
func (c *Console) verifyCallback(r *room) error {
	found, err := adminapi.VerifyCallback.Call(r.Request.Context(), r.admin, adminapi.TestOrder{Merchant: r.id(), Mode: string(r.Mode), URL: r.Form("url")})
	if err != nil {
		return err
	}
	return r.Show("verified.html", r.T("Does it verify?"), map[string]any{"Room": r, "Found": found, "Back": r.Path("/callbacks")})
}
