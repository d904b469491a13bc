// Package sandbox simulates Digiflazz's API for buyers: balance, price lists,
// prepaid and postpaid transactions, webhooks, and the public test numbers. An
// answered purchase survives a kill, and the witness counts each purchase that was
// made. It must not import the gateway or the plugin's adapter: a mistake that both
// share would stay unseen.
package sandbox
