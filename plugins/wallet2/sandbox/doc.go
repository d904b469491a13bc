// Package sandbox owns a simulator of a merchant wallet as wallet2 needs it:
// accounts with a printed QR code of their own, payers who pay codes derived from
// these, and settlement reports, which come as CSV files. A payment that was
// answered survives a kill. It must not import the gateway or the plugin's
// adapter: what both would get wrong together, nobody would see.
package sandbox
