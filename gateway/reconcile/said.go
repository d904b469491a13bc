package reconcile

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Said is what a provider's own list says of an account since a moment.
type Said struct {
	Connection tenants.Connection
	Rows       []SaidRow
	Unread     string // why it could not be read, "" where it was
}

// SaidRow is money that left the account.
type SaidRow struct {
	sdk.StatementLine
	Names string // "a movement" that the database has, "a lost movement", or "nothing" of ours
}

// Said reads, of all of a merchant's accounts whose mutations can be listed, what has
// left them since a moment. Those of a provider of which nothing is known are unread. It changes nothing.
func (a *Absences) Said(ctx context.Context, account *tenants.Account, since time.Time) ([]Said, error) {
	var all []Said
	for _, c := range account.Connections() {
		switch lists, known := a.lists(string(c.Provider)); {
		case !known:
			all = append(all, Said{Connection: c, Unread: "nobody knows what it can list: its plugin has not come up, or is not configured"})
			continue
		case !lists:
			continue
		}
		connection, err := a.Open(c)
		if err != nil {
			all = append(all, Said{Connection: c, Unread: err.Error()})
			continue
		}
		said := Said{Connection: c}
		said.Unread = a.pages(ctx, string(c.Provider), connection, since, func(line sdk.StatementLine) {
			said.Rows = append(said.Rows, SaidRow{StatementLine: line})
		})
		for i := range said.Rows {
			if said.Rows[i].Names, err = a.names(ctx, said.Rows[i].Reference); err != nil {
				return nil, err
			}
		}
		all = append(all, said)
	}
	return all, nil
}

// lists tells whether a provider can list an account's mutations, which is known once its
// manifest is.
func (a *Absences) lists(provider string) (lists, known bool) {
	for _, op := range a.Catalog.Current().Operations() {
		if op.Provider == provider {
			return op.Manifest.Mutations, true
		}
	}
	return false, false
}

func (a *Absences) names(ctx context.Context, reference string) (what string, err error) {
	id, ours := movement.ParseUpstreamReference(reference)
	if !ours {
		return "nothing", nil
	}
	if _, err = a.Store.MovementByID(ctx, id); errors.Is(err, movement.ErrNotFound) {
		return "a lost movement", nil
	}
	return "a movement", err
}

// pages reads an account's mutations to their end, or says why they could not be. Row
// gets each one that is money out.
func (a *Absences) pages(ctx context.Context, provider string, c lifecycle.Connection, from time.Time, row func(sdk.StatementLine)) (why string) {
	cursor, reading := "", uuid.NewString()
	for range mostPages {
		page := a.provider.Statement(ctx, provider, sdk.Statement{
			RequestID: reading, Connection: c.Connection, Cursor: cursor, Limit: pageSize, From: from,
		}, pageTimeout)
		if page.Blame == sdk.BlameAccount {
			a.Alert(ctx, provider, c, page.Detail)
		}
		if !page.Known {
			return "the account's mutations can't be read: " + lifecycle.Printable(page.Detail)
		}
		for _, line := range page.Lines {
			if line.Outgoing {
				row(line)
			}
		}
		switch {
		case !page.More:
			return ""
		case page.Cursor == cursor:
			return "the account's mutations can't be read: their cursor stands still"
		}
		cursor = page.Cursor
	}
	return "the account's mutations have too many pages"
}
