// Package movement owns the domain: the movement, one use of a money operation, its
// states, the rules of each kind as explicit values, and [Apply], which says what a
// fact means. It is pure: it decides and does nothing about it. It must not know
// SQL, plugins, HTTP or the clock.
//
// The states of a payment. Orders and transfers have no life that ends by itself,
// and so neither Expired nor late money. Acknowledged is Submitting of which a
// merchant has read that it is pending: a promise, so that proof that nothing was
// sent makes it Failed and never NotSubmitted.
//
//	         reserve               accepted              paid
//	(none) ─────────▶ Submitting ───────────▶ Pending ─────────▶ Succeeded
//	  ▲                 │ │ refused             │ │ life over, or cancelled
//	  │ reserve again   │ └───────▶ Failed ◀────┘ └────────────▶ Expired
//	  │                 │ proof that nothing was sent
//	  └─ NotSubmitted ◀─┘
//
// Succeeded, Failed and Expired never change. Money that comes after Expired or
// Failed is late money, and a success that the provider takes back is a reversal:
// both are records of their own, and the state stays.
//
// TRUTH.md has a diagram of each kind, and what Apply does in every state with every
// fact. The tests write it and hold it.
package movement
