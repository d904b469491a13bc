// Package sandbox owns a simulator of Digiflazz's API for buyers: balance,
// price lists, prepaid and postpaid transactions, webhooks, and the public test
// numbers. A purchase that was answered survives a kill, and the witness counts
// each one that was really made. It must not import the gateway or the plugin's
// adapter: what both would get wrong together, nobody would see.
package sandbox
