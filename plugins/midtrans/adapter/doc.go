// Package adapter speaks to Midtrans: Snap for payment links, the Core API for QRIS
// charges, for the status, the end and the refunds of either, and notifications. Each call
// of the gateway becomes at most one request that creates something, and each answer an
// outcome that says no more than the answer proves. The package keeps only HTTP
// clients. It must not send anything twice, or let a credential into a text.
//
// Midtrans knows an order by order_id, which is our reference and so the provider's
// reference, too: a link has no other name that its answer, its notifications and its
// status have in common. The status API knows nothing of a link whose payer has not
// chosen how to pay: that it finds none proves nothing about a link, and is never told
// as "not found".
//
// A refund is sent under our reference as its refund_key, which Midtrans takes once and
// lists with the transaction. Before it is sent, the transaction is read: it tells how the
// payment was made, which decides the path, and whether the refund was made already. QRIS,
// GoPay and ShopeePay are refunded directly, and the answer is their provider's. Cards,
// DANA, OVO, Kredivo and Akulaku may have to wait for a bank: such a refund is pending, and
// no return of its payment, until bank_confirmed_at is set. Bank transfers and payments in
// shops can't be refunded by the API. A card payment can't be before it settles, on the next
// day: it is voided until then, which the gateway has no operation for.
//
// A dispute that the merchant wins after a chargeback is not told as an undone return.
// Midtrans' documents name no status that follows chargeback or partial_chargeback, and no
// member that says how a dispute ended. If a transaction goes back to settlement, the plugin
// tells what that says: paid, and nothing went back. The gateway lists the contradiction as
// an exception ("its money went back, and the provider says succeeded"), and an operator
// decides.
package adapter
