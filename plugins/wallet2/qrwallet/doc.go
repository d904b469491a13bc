// Package qrwallet is the adapter to a merchant wallet that has nothing but a
// printed QR code and settlement reports. It turns the code into one per sale,
// and reads reports, which come as CSV, into entries of a statement. It must
// keep nothing and decide nothing: which sale a row pays is the gateway's word.
package qrwallet
