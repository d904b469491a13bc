package adminapi

import (
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// AuditSelection says which entries of an audit to list. Everything may be left out.
type AuditSelection struct {
	Since    time.Time `query:"since" placeholder:"TIME" help:"Only from this time on, such as 2026-01-02T03:04:05Z."`
	Until    time.Time `query:"until" placeholder:"TIME" help:"Only before this time."`
	Operator string    `query:"operator" placeholder:"NAME" help:"Only what this one did."`
	Action   string    `query:"action" placeholder:"ACTION" help:"Only what begins so, such as key. or merchant.suspend."`
	About    string    `query:"about" placeholder:"TEXT" help:"Only what has this in its detail, such as a key's id or a reference."`
	After    string    `query:"after" kong:"-"` // the last entry of the page before, whose time is Until
	Limit    int       `query:"limit" default:"200" help:"At most so many (${default}); all from --since on with 0."`
}

// AuditFilter says which entries of the audit of a merchant, or of the platform, to list.
type AuditFilter struct {
	Merchant string `path:"merchant" arg:"" help:"The merchant's id, or platform."`
	AuditSelection
}

// AuditsFilter says which entries to list of all that there are.
type AuditsFilter struct {
	Merchant string `query:"merchant" placeholder:"MERCHANT" help:"Only what was done to this one, or to platform."`
	AuditSelection
}

// AuditExport says which links of the chain over the audit to list, in their order: those
// behind one, with entries of a span, or with entries that are gone.
type AuditExport struct {
	After int64     `query:"after" placeholder:"SEQUENCE" help:"Only the links behind this one."`
	Since time.Time `query:"since" placeholder:"TIME" help:"Only entries from this time on."`
	Until time.Time `query:"until" placeholder:"TIME" help:"Only entries before this time."`
	Limit int       `query:"limit" kong:"-"`
}

// ExportedLink is a link that an export has told of, if any.
type ExportedLink struct {
	Sequence int64  `query:"sequence"`
	Hash     string `query:"hash"` // in hex
}

// The acts on the audit, which only read it.
var (
	ListAudit = Endpoint[AuditFilter, []store.Audit]{Act{
		Route: "GET /admin/merchants/{merchant}/audit", Takes: Read, Platform: true, Text: "List the changes that were made to a merchant, the newest first.",
	}}
	ListAudits  = Endpoint[AuditsFilter, []store.Audit]{Act{Route: "GET /admin/audit", Takes: Read, Text: "List the changes that were made to the platform and to all merchants, the newest first."}}
	ExportAudit = Endpoint[AuditExport, []store.AuditLine]{Act{Route: "GET /admin/audit/links", Takes: Read, Text: "List the links of the chain over the audit with their entries, the oldest first."}}
	VerifyAudit = Endpoint[ExportedLink, store.AuditReport]{Act{Route: "GET /admin/audit/verify", Takes: Read, Slow: true, Text: "Verify the chain over the audit."}}
)
