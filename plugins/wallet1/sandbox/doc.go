// Package sandbox owns a simulator of an issuer of electronic money that speaks
// SNAP, the open API standard of Indonesia's central bank: tokens, signatures,
// inquiries, top-ups, transfers to banks, their status, balance and history, in
// plain SNAP and in DANA's dialect. A transfer that was answered survives a
// kill, and the witness counts each one that moved money. It must not import the
// gateway or the plugin's adapter: what both would get wrong together, nobody
// would see.
package sandbox
