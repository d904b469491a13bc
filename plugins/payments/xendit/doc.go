// Package xendit is the adapter for Xendit's API: invoices v2, QR codes of
// api-version 2022-07-31, and webhooks. It turns each call of the gateway into
// at most one request that creates something, and each answer into an outcome
// that says no more than the answer proves. It must not keep anything but
// HTTP clients and the last references tried, send anything twice, or let a
// credential into a text.
package xendit
