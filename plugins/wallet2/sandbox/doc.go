// Package sandbox is a merchant wallet as wallet2 needs it: accounts with a
// printed QR code of their own, payers who pay codes derived from these, and
// settlement reports, which come as CSV files. It owns no rule of any gateway
// and must not know one.
package sandbox
