// Package sandbox simulates the part of Midtrans' APIs that the plugin uses: Snap
// transactions and the page on which a payer chooses and pays, QRIS charges, status,
// expire, cancel and refund, and signed notifications. A link is unknown to the status API
// before its payer has chosen how to pay. Its state survives a kill. It must not
// import the gateway or the plugin's adapter: a mistake that both share would stay
// unseen.
package sandbox
