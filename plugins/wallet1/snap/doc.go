// Package snap is the adapter to Bank Indonesia's open API standard, SNAP, as
// issuers of electronic money offer it: inquiries, transfers to wallets and to
// bank accounts, their status, the history, and notifications. It owns the
// upstream's formats: signatures, tokens, amounts, response codes and what they
// prove. It must not know the gateway, decide what a name or a fee is worth, or
// keep more than clients and tokens between calls.
package snap
