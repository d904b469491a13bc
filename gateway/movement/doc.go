// Package movement owns the movement, one use of a money operation: its
// identity, its states, and the rules table with one row for each kind. It is
// pure: it decides what a fact means for a state and does nothing about it. It
// must not know SQL, plugins, HTTP or the clock.
//
// The states and what leads from one to another, of a payment. Orders and
// transfers have no life that ends by itself, and so neither Expired nor late
// money; their rows of the table say what they have:
//
//	          claim                    accepted                 paid
//	(none) ──────────▶ Sending ──────────────────▶ Pending ──────────────▶ Done
//	  ▲                  │ │ refused                 │ │ life over, or cancelled
//	  │ claim again      │ └────────▶ Failed ◀───────┘ └────────────────▶ Expired
//	  │                  │ proof that nothing was sent
//	  └─────── Unsent ◀──┘
//
// Done, Failed and Expired never change. Money that comes after Expired or
// Failed is late money, and a Done that the provider takes back is a reversal:
// both are records of their own, and the state stays.
package movement
