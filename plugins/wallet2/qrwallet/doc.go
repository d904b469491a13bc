// Package qrwallet is the adapter to a merchant wallet that offers only a printed QR
// code and settlement reports. It makes a code for each sale, and reads CSV reports
// into statement lines. It must keep nothing and match nothing: the gateway decides
// which sale a line pays.
package qrwallet
