package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Sealed is what of one account is sealed: of its connections and callback
// secrets, the names and the sealed values alone. The platform has the key by which
// references become ids, too, and the MACs of policies.
type Sealed struct {
	MerchantID  tenants.MerchantID
	Connections []tenants.Connection
	Secrets     []tenants.CallbackSecret
	NameKey     []byte           // nil for none
	Policies    []PolicyMAC      // of the platform
	People      []tenants.Person // the second factors alone; beside the platform's row
}

// PolicyMAC is the MAC of a policy version, of an activation, of a plugin's approval, of
// the word which approval of a plugin is in force, of an operator's token, or of the word
// which version is, where all are zero.
type PolicyMAC struct {
	Version    policy.Version
	Activation uuid.UUID
	Approval   uuid.UUID
	Plugin     string
	Operator   []byte // the hash of the token
	MAC        []byte
}

// SealedAfter lists accounts in the order of their ids, after one of them, with
// what of each is sealed. The platform is among them.
func (s *Store) SealedAfter(ctx context.Context, after tenants.MerchantID, most int) ([]Sealed, error) {
	ids, err := s.queries.AccountsAfter(ctx, dbsqlc.AccountsAfterParams{After: string(after), Most: int32(most)}) //nolint:gosec // a page
	if err != nil || len(ids) == 0 {
		return nil, sealedFault(err)
	}
	accounts, place := make([]Sealed, len(ids)), make(map[string]*Sealed, len(ids))
	for i, id := range ids {
		accounts[i].MerchantID = tenants.MerchantID(id)
		place[id] = &accounts[i]
	}
	last := ids[len(ids)-1]
	connections, err := s.queries.SealedConnections(ctx, dbsqlc.SealedConnectionsParams{After: string(after), Last: last})
	if err != nil {
		return nil, sealedFault(err)
	}
	for _, row := range connections {
		if of := place[row.MerchantID]; of != nil { // else the account is newer than the list
			of.Connections = append(of.Connections, tenants.Connection{
				MerchantID: of.MerchantID, Mode: tenants.Mode(row.Mode), Provider: tenants.Provider(row.Provider), Sealed: row.Sealed,
			})
		}
	}
	secrets, err := s.queries.SealedCallbackSecrets(ctx, dbsqlc.SealedCallbackSecretsParams{After: string(after), Last: last})
	if err != nil {
		return nil, sealedFault(err)
	}
	for _, row := range secrets {
		if of := place[row.MerchantID]; of != nil {
			of.Secrets = append(of.Secrets, tenants.CallbackSecret{
				MerchantID: of.MerchantID, Mode: tenants.Mode(row.Mode), Sealed: row.Sealed, Next: row.NextSealed,
			})
		}
	}
	if platform := place[string(tenants.Platform)]; platform != nil {
		if platform.NameKey, err = s.queries.NameKey(ctx); err != nil {
			return nil, sealedFault(err)
		}
		if platform.Policies, err = s.policyMACs(ctx); err != nil {
			return nil, sealedFault(err)
		}
		people, err := s.queries.SealedTOTPs(ctx)
		if err != nil {
			return nil, sealedFault(err)
		}
		for _, row := range people {
			platform.People = append(platform.People, tenants.Person{ID: row.PersonID, TOTP: row.Totp})
		}
	}
	return accounts, nil
}

func (s *Store) policyMACs(ctx context.Context) (macs []PolicyMAC, err error) {
	head, err := s.queries.PolicyHead(ctx)
	switch {
	case err == nil:
		macs = []PolicyMAC{{MAC: head.Mac}}
	case !errors.Is(err, pgx.ErrNoRows):
		return nil, err
	}
	versions, err := s.queries.PolicyVersions(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range versions {
		macs = append(macs, PolicyMAC{Version: policy.Version(row.Version), MAC: row.Mac})
	}
	activations, err := s.queries.PolicyActivationMACs(ctx)
	for _, row := range activations {
		macs = append(macs, PolicyMAC{Activation: row.ActivationID, MAC: row.Mac})
	}
	if err != nil {
		return nil, err
	}
	approvals, err := s.queries.PluginApprovals(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range approvals {
		macs = append(macs, PolicyMAC{Approval: row.ApprovalID, MAC: row.Mac})
	}
	plugins, err := s.queries.PluginHeads(ctx)
	for _, row := range plugins {
		macs = append(macs, PolicyMAC{Plugin: row.Provider, MAC: row.Mac})
	}
	if err != nil {
		return nil, err
	}
	tokens, err := s.queries.OperatorTokens(ctx)
	for _, row := range tokens {
		macs = append(macs, PolicyMAC{Operator: row.Hash, MAC: row.Mac})
	}
	return macs, err
}

func sealedFault(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store: sealed values: %w", err)
}

var errNothingResealed = errors.New("store: nothing was sealed anew")

// Reseal stores what was sealed anew: becomes has the names of was in its
// order. A value that somebody else has replaced meanwhile stays theirs. It
// tells how many rows it changed; where there are none nothing is audited, and
// no replica reads the account again.
func (s *Store) Reseal(ctx context.Context, audit Audit, was, becomes Sealed) (changed int64, err error) {
	err = s.administer(ctx, "reseal", audit, was.MerchantID, func(q *dbsqlc.Queries) error {
		changed = 0 // the transaction may be tried again
		for i, old := range was.Connections {
			rows, err := q.ResealConnection(ctx, dbsqlc.ResealConnectionParams{
				MerchantID: string(old.MerchantID), Mode: string(old.Mode), Provider: string(old.Provider),
				Was: old.Sealed, Becomes: becomes.Connections[i].Sealed,
			})
			if err != nil {
				return err
			}
			changed += rows
		}
		for i, old := range was.Secrets {
			rows, err := q.ResealCallbackSecret(ctx, dbsqlc.ResealCallbackSecretParams{
				MerchantID: string(old.MerchantID), Mode: string(old.Mode), Was: old.Sealed, NextWas: old.Next,
				Becomes: becomes.Secrets[i].Sealed, NextBecomes: becomes.Secrets[i].Next,
			})
			if err != nil {
				return err
			}
			changed += rows
		}
		if was.NameKey != nil {
			rows, err := q.ResealNameKey(ctx, dbsqlc.ResealNameKeyParams{Was: was.NameKey, Becomes: becomes.NameKey})
			if err != nil {
				return err
			}
			changed += rows
		}
		for i, old := range was.Policies {
			rows, err := resealPolicy(ctx, q, old, becomes.Policies[i].MAC)
			if err != nil {
				return err
			}
			changed += rows
		}
		for i, old := range was.People {
			rows, err := q.ResealTOTP(ctx, dbsqlc.ResealTOTPParams{PersonID: old.ID, Was: old.TOTP, Becomes: becomes.People[i].TOTP})
			if err != nil {
				return err
			}
			changed += rows
		}
		if changed == 0 {
			return errNothingResealed
		}
		return nil
	})
	if errors.Is(err, errNothingResealed) {
		return 0, nil
	}
	return changed, err
}

func resealPolicy(ctx context.Context, q *dbsqlc.Queries, was PolicyMAC, becomes []byte) (int64, error) {
	switch {
	case was.Approval != uuid.Nil:
		return q.ResealPluginApproval(ctx, dbsqlc.ResealPluginApprovalParams{Becomes: becomes, ApprovalID: was.Approval, Was: was.MAC})
	case was.Operator != nil:
		return q.ResealOperatorToken(ctx, dbsqlc.ResealOperatorTokenParams{Becomes: becomes, Hash: was.Operator, Was: was.MAC})
	case was.Plugin != "":
		return q.ResealPluginHead(ctx, dbsqlc.ResealPluginHeadParams{Becomes: becomes, Provider: was.Plugin, Was: was.MAC})
	case was.Activation != uuid.Nil:
		return q.ResealPolicyActivation(ctx, dbsqlc.ResealPolicyActivationParams{Becomes: becomes, ActivationID: was.Activation, Was: was.MAC})
	case was.Version == "":
		return q.ResealPolicyHead(ctx, dbsqlc.ResealPolicyHeadParams{Becomes: becomes, Was: was.MAC})
	}
	return q.ResealPolicyVersion(ctx, dbsqlc.ResealPolicyVersionParams{Becomes: becomes, Version: string(was.Version), Was: was.MAC})
}
