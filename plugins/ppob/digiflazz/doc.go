// Package digiflazz is the adapter to Digiflazz's buyer API: price lists, prepaid
// transactions, postpaid inquiries and payments, and webhooks. Each order of the
// gateway becomes one purchase under one ref_id, and each answer an outcome that says
// no more than the answer proves. The package keeps only HTTP clients and the price
// lists that it may not ask for again. It must not pay a bill on another day than
// that of its inquiry, or let a secret into a text.
package digiflazz
