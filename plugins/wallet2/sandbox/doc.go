// Package sandbox simulates a merchant wallet: accounts with a printed QR code,
// payers who pay codes derived from these, and settlement reports as CSV files. An
// answered payment survives a kill. It must not import the gateway or the plugin's
// adapter: a mistake that both share would stay unseen.
package sandbox
