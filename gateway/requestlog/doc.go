// Package requestlog keeps what merchants asked and what they were answered, for seven days: masked, packed, and sealed for the merchant
// whose calls they are. It keeps what fits into its memory and counts what does not; it decides nothing about a request, and must not hold
// one up.
package requestlog
