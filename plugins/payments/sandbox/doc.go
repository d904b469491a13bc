// Package sandbox owns a simulator of Xendit's API as far as the payments
// plugin uses it: invoices v2, QR codes in both shapes, webhooks, the page a
// payer sees. It answers as the recorded traffic does, errors included, and
// remembers everything through a kill. It must not import the gateway or the
// plugin's adapter: what both would get wrong together, nobody would see.
package sandbox
