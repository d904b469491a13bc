// Package xendit is the adapter to Xendit's API: invoices v2 and their refunds, QR codes of api-version
// 2022-07-31, and webhooks. Each call of the gateway becomes at most one request that
// creates something, and each answer an outcome that says no more than the answer
// proves. The package keeps only HTTP clients and the last references tried. It must
// not send anything twice, or let a credential into a text.
package xendit
