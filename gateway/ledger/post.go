package ledger

import "github.com/seed-f006e74d/gerbang/sdk/money"

// BeginCharge takes a movement's price when it is reserved.
func BeginCharge(price money.Amount) Transaction {
	return Transaction{Step: Begins, Kind: Charge, Legs: Legs{Available: -price, Margin: price}}
}

// BeginHold holds a movement's price when it is reserved.
func BeginHold(price money.Amount) Transaction {
	return Transaction{Step: Begins, Kind: Hold, Legs: Legs{Available: -price, Held: price}}
}

// EndCost ends the charge of a movement that succeeded: the provider took its cost
// out of the deposit.
func EndCost(cost money.Amount) Transaction {
	return Transaction{Step: Ends, Kind: Cost, Legs: Legs{Cost: -cost, Deposit: cost}}
}

// EndCapture ends the hold of a movement that succeeded: the price is taken, and the
// provider took its cost.
func EndCapture(price, cost money.Amount) Transaction {
	return Transaction{Step: Ends, Kind: Capture, Legs: Legs{Held: -price, Margin: price, Cost: -cost, Deposit: cost}}
}

// GiveBack ends the charge of a movement that failed: the price is refunded.
func GiveBack(price money.Amount) Transaction {
	return Transaction{Step: Ends, Kind: Refund, Legs: Legs{Available: price, Margin: -price}}
}

// LetGo ends the hold of a movement that failed: the price is released.
func LetGo(price money.Amount) Transaction {
	return Transaction{Step: Ends, Kind: Release, Legs: Legs{Available: price, Held: -price}}
}

// TakeBack reverses a movement that had succeeded, at its price and cost: the
// merchant gets its price back, the deposit its cost.
func TakeBack(price, cost money.Amount) Transaction {
	return Transaction{Step: Reverses, Kind: Reversal, Legs: Legs{Available: price, Margin: -price, Cost: cost, Deposit: -cost}}
}

// Adjust credits a balance for an operator, or debits it by a negative amount.
func Adjust(amount money.Amount) Transaction {
	kind := Credit
	if amount < 0 {
		kind = Debit
	}
	return Transaction{Step: Begins, Kind: kind, Legs: Legs{Available: amount, Adjustments: -amount}}
}
