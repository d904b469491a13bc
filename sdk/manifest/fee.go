package manifest

import "github.com/seed-f006e74d/gerbang/sdk/money"

const (
	// smallFee is more than any transfer of little money costs: by RTGS up to 35,000.
	smallFee money.Amount = 100_000
	// feeShare is the part of an amount that no transfer of much money costs: a tenth.
	feeShare = 10
)

// HighestFee is the most that a provider may take for a transfer of an amount. A row of
// the account's mutations is taken for a transfer's only between its amount and that
// with this fee, so a transfer that would cost more is refused before it is sent.
func HighestFee(amount money.Amount) money.Amount { return smallFee + amount/feeShare }
