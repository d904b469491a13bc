// Package snap is the adapter to SNAP, Bank Indonesia's open API standard, as issuers
// of electronic money offer it: inquiries, transfers to wallets and to bank accounts,
// their status, the history, and notifications. It owns the upstream's formats:
// signatures, tokens, amounts, response codes and what they prove. It keeps only
// clients and tokens between calls. It must not know the gateway, or decide what a
// name or a fee is worth.
package snap
