// Package sandbox simulates the part of Xendit's API that the payments plugin uses:
// invoices v2 and their refunds, QR codes in both shapes, webhooks, and the page on
// which a person pays, steers a payment and watches what follows. It answers as the
// recorded traffic does, errors included, and its state survives a kill. Refunds answer
// as the upstream's public reference says. It must not import the gateway or the plugin's
// adapter: a mistake that both share would stay unseen.
package sandbox
