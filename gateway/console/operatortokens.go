package console

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

const (
	// tokenPrefix begins each token that is kept in the database, so that nothing else is
	// looked up there, and a leaked one is recognized.
	tokenPrefix = "op_"
	maxOperator = 100
	minExpires  = time.Minute
	maxExpires  = 5 * 365 * 24 * time.Hour
)

// gatewaysOwn are names under which the gateway itself stands in the audit.
var gatewaysOwn = []string{"gateway", "gerbang"}

// OperatorTokens keeps the tokens of operators, by their hash. Each change is committed
// with its audit entry. An operator of a name that has a token already is
// store.ErrOperatorNamed, and a token that has changed since it was read
// store.ErrOperatorMoved.
type OperatorTokens interface {
	OperatorTokenByHash(ctx context.Context, hash [32]byte) (store.OperatorToken, error)
	OperatorTokens(ctx context.Context) ([]store.OperatorToken, error)
	CreateOperatorToken(ctx context.Context, audit store.Audit, t store.OperatorToken) error
	RotateOperatorToken(ctx context.Context, audit store.Audit, next, retiring store.OperatorToken, was []byte) error
	EndOperatorTokens(ctx context.Context, audit store.Audit, ended []store.EndedToken) error
}

// tokenHolder finds the operator whose token is kept in the database; there is none for a
// token that nobody has, or has any longer. Each request reads it, so that a revocation
// holds at once on every replica.
func (c *Console) tokenHolder(ctx context.Context, token string, hash [32]byte) (Identity, error) {
	if !strings.HasPrefix(token, tokenPrefix) {
		return Identity{}, nil
	}
	t, err := c.deps.Operators.OperatorTokenByHash(ctx, hash)
	if errors.Is(err, store.ErrNotFound) {
		return Identity{}, nil
	}
	if err != nil {
		return Identity{}, err
	}
	signed, err := c.signed(t)
	switch {
	case err != nil:
		return Identity{}, err
	case !signed:
		c.log.WarnContext(ctx, "an operator's token was not written by a gateway with this keyset: it is refused", "operator", t.Name)
	case c.ofConfiguration(t.Name):
		c.log.WarnContext(ctx, "an operator's token has the name of an operator of the configuration: it is refused", "operator", t.Name)
	case t.Usable(c.deps.Now()):
		return Identity{Name: t.Name, Role: Role(t.Role), Inputs: t.Inputs}, nil
	}
	return Identity{}, nil
}

// signed tells whether a gateway with this keyset has written a token's row as it is.
func (c *Console) signed(t store.OperatorToken) (bool, error) {
	err := c.deps.Vault.VerifyPolicy(t.MAC, t.Digest())
	if errors.Is(err, tenants.ErrSealed) {
		return false, nil
	}
	return err == nil, err
}

func (c *Console) ofConfiguration(name string) bool {
	return slices.ContainsFunc(c.access.Load().Operators, func(o Operator) bool { return o.Name == name })
}

func (c *Console) listOperatorTokens(x *call, _ adminapi.None) ([]adminapi.OperatorToken, error) {
	tokens, err := c.deps.Operators.OperatorTokens(x.request.Context())
	if err != nil {
		return nil, err
	}
	return c.tokenDocuments(tokens, x.now)
}

func (c *Console) createOperatorToken(x *call, wanted adminapi.NewOperatorToken) (adminapi.CreatedOperatorToken, error) {
	role, err := ParseRole(wanted.Role)
	if err != nil {
		return adminapi.CreatedOperatorToken{}, fault.Invalid("role", err.Error())
	}
	switch {
	case !plain(wanted.Name, 1, maxOperator) || strings.TrimSpace(wanted.Name) != wanted.Name:
		return adminapi.CreatedOperatorToken{}, fault.Invalid("name", "must have 1 to 100 characters, without control characters and spaces around it")
	case slices.Contains(gatewaysOwn, wanted.Name):
		return adminapi.CreatedOperatorToken{}, fault.Invalid("name", "must not be the gateway's own in the audit")
	case c.ofConfiguration(wanted.Name):
		return adminapi.CreatedOperatorToken{}, fault.Invalid("name", "must not be that of an operator of the configuration")
	}
	t := store.OperatorToken{Name: wanted.Name, Role: string(role), Inputs: wanted.Inputs, CreatedBy: x.operator.Name}
	if wanted.Expires != "" {
		life, err := time.ParseDuration(wanted.Expires)
		if err != nil || life < minExpires || life > maxExpires {
			return adminapi.CreatedOperatorToken{}, fault.Invalid("expires", `must be a duration from "1m" to "43800h"`)
		}
		t.ExpiresAt = new(x.now.Add(life).UTC().Truncate(time.Microsecond))
	}
	token, err := c.drawToken(&t, x.now)
	if err != nil {
		return adminapi.CreatedOperatorToken{}, err
	}
	err = c.deps.Operators.CreateOperatorToken(x.request.Context(), x.audit("operator.token.create", tokenDetail(t)), t)
	if errors.Is(err, store.ErrOperatorNamed) {
		return adminapi.CreatedOperatorToken{}, fault.Invalid("name", "must not be that of an operator who has a token: rotate it, or revoke it first")
	}
	return c.createdToken(t, token, err)
}

// rotateOperatorToken replaces the newest token of an operator. The new one has the same
// rights, and as long to live as that one had.
func (c *Console) rotateOperatorToken(x *call, wanted adminapi.OperatorRotation) (adminapi.CreatedOperatorToken, error) {
	overlap, err := overlapOf(wanted.Overlap)
	if err != nil {
		return adminapi.CreatedOperatorToken{}, err
	}
	tokens, err := c.tokensOf(x, wanted.Name)
	if err != nil {
		return adminapi.CreatedOperatorToken{}, err
	}
	old := tokens[0]
	signed, err := c.signed(old)
	if err != nil {
		return adminapi.CreatedOperatorToken{}, err
	}
	if !old.Usable(x.now) || !signed {
		return adminapi.CreatedOperatorToken{}, fault.Invalid("name", "names an operator whose token is revoked, expired or not signed; create a new one")
	}
	next := store.OperatorToken{Name: old.Name, Role: old.Role, Inputs: old.Inputs, CreatedBy: x.operator.Name}
	if old.ExpiresAt != nil {
		next.ExpiresAt = new(x.now.Add(old.ExpiresAt.Sub(old.CreatedAt)).UTC().Truncate(time.Microsecond))
	}
	token, err := c.drawToken(&next, x.now)
	if err != nil {
		return adminapi.CreatedOperatorToken{}, err
	}
	end := x.now.Add(overlap).UTC().Truncate(time.Microsecond)
	retiring := old
	if old.ExpiresAt == nil || end.Before(*old.ExpiresAt) {
		retiring.ExpiresAt = &end
	}
	if retiring.MAC, err = c.deps.Vault.SealPolicy(retiring.Digest()); err != nil {
		return adminapi.CreatedOperatorToken{}, err
	}
	audit := x.audit("operator.token.rotate", tokenDetail(next)+", overlap "+overlap.String())
	err = c.deps.Operators.RotateOperatorToken(x.request.Context(), audit, next, retiring, old.MAC)
	return c.createdToken(next, token, movedMeanwhile(err))
}

// revokeOperatorTokens ends all tokens of an operator, also those that a rotation has left.
func (c *Console) revokeOperatorTokens(x *call, wanted adminapi.OperatorRevocation) ([]adminapi.OperatorToken, error) {
	if err := checkReason(wanted.Reason); err != nil {
		return nil, err
	}
	tokens, err := c.tokensOf(x, wanted.Name)
	if err != nil {
		return nil, err
	}
	now := x.now.UTC().Truncate(time.Microsecond)
	var ended []store.EndedToken
	for i := range tokens {
		if tokens[i].RevokedAt != nil {
			continue
		}
		was := tokens[i].MAC
		tokens[i].RevokedAt = &now
		if tokens[i].MAC, err = c.deps.Vault.SealPolicy(tokens[i].Digest()); err != nil {
			return nil, err
		}
		ended = append(ended, store.EndedToken{OperatorToken: tokens[i], Was: was})
	}
	if len(ended) > 0 {
		detail := "name " + tokens[0].Name
		if wanted.Reason != "" {
			detail += ": " + wanted.Reason
		}
		if err := c.deps.Operators.EndOperatorTokens(x.request.Context(), x.audit("operator.token.revoke", detail), ended); err != nil {
			return nil, movedMeanwhile(err)
		}
	}
	return c.tokenDocuments(tokens, x.now)
}

func movedMeanwhile(err error) error {
	if errors.Is(err, store.ErrOperatorMoved) {
		return fault.New(fault.InProgress, "Somebody else has just changed this operator's token. Nothing was changed; look at it and try again.")
	}
	return err
}

// tokensOf are the tokens of the operator of a name, the newest first; there is
// one at least.
func (c *Console) tokensOf(x *call, name string) ([]store.OperatorToken, error) {
	all, err := c.deps.Operators.OperatorTokens(x.request.Context())
	if err != nil {
		return nil, err
	}
	tokens := slices.DeleteFunc(all, func(t store.OperatorToken) bool { return t.Name != name })
	if len(tokens) == 0 && c.ofConfiguration(name) {
		return nil, fault.New(fault.NotFound, "This operator stands in the configuration, and is changed there.")
	}
	if len(tokens) == 0 {
		return nil, fault.New(fault.NotFound, "There is no operator of this name who has a token.")
	}
	return tokens, nil
}

// drawToken draws the token of a row, and signs the row.
func (c *Console) drawToken(t *store.OperatorToken, now time.Time) (token string, err error) {
	token = tokenPrefix + rand.Text() + rand.Text()
	t.Hash, t.CreatedAt = sha256.Sum256([]byte(token)), now.UTC().Truncate(time.Microsecond)
	t.MAC, err = c.deps.Vault.SealPolicy(t.Digest())
	return token, err
}

func (c *Console) createdToken(t store.OperatorToken, token string, err error) (adminapi.CreatedOperatorToken, error) {
	if err != nil {
		return adminapi.CreatedOperatorToken{}, err
	}
	document, err := c.tokenDocument(t, t.CreatedAt)
	return adminapi.CreatedOperatorToken{OperatorToken: document, Token: token}, err
}

func tokenDetail(t store.OperatorToken) string {
	detail := fmt.Sprintf("name %s, role %s", t.Name, t.Role)
	if t.Inputs {
		detail += ", inputs"
	}
	if t.ExpiresAt != nil {
		detail += ", until " + t.ExpiresAt.Format(time.RFC3339)
	}
	return detail
}

func (c *Console) tokenDocuments(tokens []store.OperatorToken, now time.Time) ([]adminapi.OperatorToken, error) {
	list := make([]adminapi.OperatorToken, len(tokens))
	for i, t := range tokens {
		var err error
		if list[i], err = c.tokenDocument(t, now); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (c *Console) tokenDocument(t store.OperatorToken, now time.Time) (adminapi.OperatorToken, error) {
	signed, err := c.signed(t)
	return adminapi.OperatorToken{OperatorToken: t, Usable: signed && t.Usable(now), Unsigned: !signed}, err
}
