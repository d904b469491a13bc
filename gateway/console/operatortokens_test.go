package console_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// comesIn tells whether a token opens the admin API.
func (w *world) comesIn(token string) bool {
	w.Helper()
	status, _, body := w.send(http.MethodGet, "/admin/plugins", "Bearer "+token, "")
	if status != http.StatusOK && status != http.StatusUnauthorized {
		w.Fatalf("status %d: %s", status, body)
	}
	return status == http.StatusOK
}

func (w *world) operator(name string, role console.Role, expires string) adminapi.CreatedOperatorToken {
	w.Helper()
	made, err := adminapi.CreateOperatorToken.Call(w.Context(), w, adminapi.NewOperatorToken{Name: name, Role: string(role), Expires: expires})
	if err != nil {
		w.Fatal(err)
	}
	return made
}

func TestAnOperatorsTokenHasItsRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.operator("sari", console.RoleSupport, "")
	if !made.Usable || made.ExpiresAt != nil || made.CreatedBy != "ayu" || !strings.HasPrefix(made.Token, "op_") || len(made.Token) < 32 {
		t.Errorf("made %+v", made)
	}
	id := w.merchant().MerchantID
	sari := adminapi.NewClient(w.url, made.Token)
	if _, err := adminapi.SetPause.Call(t.Context(), sari, tenants.Pause{MerchantID: tenants.MerchantID(id), What: "transfers"}); err != nil {
		t.Errorf("what support may: %v", err)
	}
	_, err := adminapi.SetTier.Call(t.Context(), sari, adminapi.TierChange{Merchant: id, Tier: "growth"})
	w.refused(err, http.StatusForbidden, "")
	_, err = adminapi.CreateOperatorToken.Call(t.Context(), sari, adminapi.NewOperatorToken{Name: "eve", Role: "admin"})
	w.refused(err, http.StatusForbidden, "")
	if got := w.actions(id); !slices.Contains(got, "sari transfers.pause") {
		t.Errorf("audit %q", got)
	}
	if logged := w.logs.String(); strings.Contains(logged, made.Token) {
		t.Error("the token is in the log")
	}
	listed, err := adminapi.ListOperatorTokens.Call(t.Context(), w, adminapi.None{})
	if err != nil || len(listed) != 1 || mustJSON(t, listed[0]) != mustJSON(t, made.OperatorToken) || strings.Contains(mustJSON(t, listed), made.Token) {
		t.Errorf("listed %+v, %v", listed, err)
	}
}

func TestARevokedTokenEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.operator("sari", console.RoleRead, "")
	second, err := adminapi.RotateOperatorToken.Call(t.Context(), w, adminapi.OperatorRotation{Name: "sari", Overlap: "1h"})
	if err != nil || second.Role != "read" || second.Token == first.Token {
		t.Fatalf("rotated %+v, %v", second, err)
	}
	if !w.comesIn(first.Token) || !w.comesIn(second.Token) {
		t.Error("during the overlap both come in")
	}
	w.ahead.Store(int64(time.Hour))
	if w.comesIn(first.Token) || !w.comesIn(second.Token) {
		t.Error("after the overlap the next one alone comes in")
	}
	w.ahead.Store(0)
	ended, err := adminapi.RevokeOperatorTokens.Call(t.Context(), w, adminapi.OperatorRevocation{Name: "sari", Reason: "left"})
	if err != nil || len(ended) != 2 || ended[0].Usable || ended[1].Usable || w.comesIn(first.Token) || w.comesIn(second.Token) {
		t.Errorf("revoked %+v, %v", ended, err)
	}
	if again, err := adminapi.RevokeOperatorTokens.Call(t.Context(), w, adminapi.OperatorRevocation{Name: "sari", Reason: ""}); err != nil || !again[0].RevokedAt.Equal(*ended[0].RevokedAt) {
		t.Errorf("revoked again %+v, %v", again, err)
	}
	_, err = adminapi.RotateOperatorToken.Call(t.Context(), w, adminapi.OperatorRotation{Name: "sari"})
	w.refused(err, http.StatusBadRequest, "name")
	if !w.comesIn(w.operator("sari", console.RoleRead, "").Token) {
		t.Error("an operator who comes back does not come in")
	}
	want := []string{"ayu operator.token.create", "ayu operator.token.rotate", "ayu operator.token.revoke", "ayu operator.token.create"}
	if got := w.actions("platform"); !slices.Equal(got, want) {
		t.Errorf("audit %q", got)
	}
}

func TestATokenExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.operator("sari", console.RoleRead, "2h")
	w.ahead.Store(int64(90 * time.Minute))
	next, err := adminapi.RotateOperatorToken.Call(t.Context(), w, adminapi.OperatorRotation{Name: "sari", Overlap: "24h"})
	if err != nil || next.ExpiresAt.Sub(next.CreatedAt) != 2*time.Hour {
		t.Errorf("rotated %+v, %v", next, err)
	}
	w.ahead.Store(int64(2*time.Hour + time.Minute))
	if w.comesIn(made.Token) || !w.comesIn(next.Token) {
		t.Error("an overlap must not put off an end")
	}
}

func TestWhoCanBeNoOperator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operator("sari", console.RoleRead, "")
	for name, c := range map[string]struct {
		wanted adminapi.NewOperatorToken
		field  string
	}{
		"of the configuration": {adminapi.NewOperatorToken{Name: "budi", Role: "read"}, "name"},
		"of the gateway":       {adminapi.NewOperatorToken{Name: "gateway", Role: "read"}, "name"},
		"there already":        {adminapi.NewOperatorToken{Name: "sari", Role: "read"}, "name"},
		"nobody":               {adminapi.NewOperatorToken{Role: "read"}, "name"},
		"two lines":            {adminapi.NewOperatorToken{Name: "a\nb", Role: "read"}, "name"},
		"a space more":         {adminapi.NewOperatorToken{Name: "sari ", Role: "read"}, "name"},
		"no role":              {adminapi.NewOperatorToken{Name: "tuti"}, "role"},
		"another role":         {adminapi.NewOperatorToken{Name: "tuti", Role: "owner"}, "role"},
		"no time":              {adminapi.NewOperatorToken{Name: "tuti", Role: "read", Expires: "soon"}, "expires"},
		"a second":             {adminapi.NewOperatorToken{Name: "tuti", Role: "read", Expires: "1s"}, "expires"},
	} {
		_, err := adminapi.CreateOperatorToken.Call(t.Context(), w, c.wanted)
		if failure := w.refused(err, http.StatusBadRequest, c.field); t.Failed() {
			t.Fatalf("%s: %v", name, failure)
		}
	}
	_, err := adminapi.RotateOperatorToken.Call(t.Context(), w, adminapi.OperatorRotation{Name: "nobody"})
	w.refused(err, http.StatusNotFound, "")
	_, err = adminapi.RevokeOperatorTokens.Call(t.Context(), w, adminapi.OperatorRevocation{Name: "budi", Reason: ""})
	if failure := w.refused(err, http.StatusNotFound, ""); !strings.Contains(failure.Message, "configuration") {
		t.Errorf("told %q", failure.Message)
	}
}

// hand is a store of tokens that somebody writes by hand.
type hand struct {
	operatorTokens
	change func(*store.OperatorToken)
}

type operatorTokens = console.OperatorTokens // which has a method of its own name

func (h *hand) OperatorTokenByHash(ctx context.Context, hash [32]byte) (store.OperatorToken, error) {
	t, err := h.operatorTokens.OperatorTokenByHash(ctx, hash)
	h.change(&t)
	return t, err
}

func TestWhoWritesTheDatabaseMakesNoOperator(t *testing.T) {
	t.Parallel()
	writes := &hand{change: func(*store.OperatorToken) {}}
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) {
		writes.operatorTokens = d.Operators
		d.Operators = writes
	})
	made := w.operator("sari", console.RoleRead, "2h")
	if !w.comesIn(made.Token) {
		t.Fatal("as it was written it does not come in")
	}
	for name, change := range map[string]func(*store.OperatorToken){
		"another role": func(t *store.OperatorToken) { t.Role = "admin" },
		"another name": func(t *store.OperatorToken) { t.Name = "tuti" },
		"no end":       func(t *store.OperatorToken) { t.ExpiresAt = nil },
		"inputs":       func(t *store.OperatorToken) { t.Inputs = true },
		"another row":  func(t *store.OperatorToken) { t.Hash[0]++ },
		"no MAC":       func(t *store.OperatorToken) { t.MAC = nil },
	} {
		writes.change = change
		if w.comesIn(made.Token) {
			t.Errorf("%s: it comes in", name)
		}
	}
	writes.change = func(*store.OperatorToken) {}
	if err := w.console.Admit(console.Access{Operators: []console.Operator{{Name: "sari", TokenHash: [32]byte{1}, Role: console.RoleRead}}}); err != nil {
		t.Fatal(err)
	}
	if w.comesIn(made.Token) {
		t.Error("with the name of an operator of the configuration it comes in")
	}
}

func TestWithoutADatabaseOnlyTheConfigurationsOperatorsComeIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.operator("sari", console.RoleRead, "")
	w.store.Close()
	status, _, body := w.send(http.MethodGet, "/admin/plugins", "Bearer "+made.Token, "")
	if status != http.StatusInternalServerError || !strings.Contains(body, `"INTERNAL"`) {
		t.Errorf("a token of the database: %d %s", status, body)
	}
	// An operator of the configuration is known without it; plugins are not in it.
	if status, _, body := w.send(http.MethodGet, "/admin/nothing", "Bearer "+token, ""); status != http.StatusNotFound {
		t.Errorf("a token of the configuration: %d %s", status, body)
	}
}
