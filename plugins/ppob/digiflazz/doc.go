// Package digiflazz is the adapter for Digiflazz's buyer API: price lists,
// prepaid transactions, postpaid inquiries and payments, and webhooks. It turns
// each order of the gateway into one purchase under one ref_id, and each answer
// into an outcome that says no more than the answer proves. It must not keep
// anything but HTTP clients and the price lists that it may not ask for again,
// pay a bill on another day than it was asked for, or let a secret into a text.
package digiflazz
