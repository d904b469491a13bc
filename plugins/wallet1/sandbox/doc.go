// Package sandbox simulates an issuer of electronic money that speaks SNAP, the open
// API standard of Indonesia's central bank: tokens, signatures, inquiries, top-ups,
// transfers to banks, their status, balance and history, in plain SNAP and in DANA's
// dialect. An answered transfer survives a kill, and the witness counts each
// transfer that moved money. It must not import the gateway or the plugin's adapter:
// a mistake that both share would stay unseen.
package sandbox
