// Package qrwallet is the adapter to a merchant wallet that has nothing but a
// printed QR code and settlement reports. It turns the code into one per sale,
// and reads reports, which come as CSV, into statement lines. It must
// keep nothing and decide nothing: the gateway decides which sale a line pays.
package qrwallet
