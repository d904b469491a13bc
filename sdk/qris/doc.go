// Package qris owns the text of QRIS codes, Indonesia's profile of EMVCo
// merchant-presented codes. It parses and checks them, and turns a merchant's
// static code into a dynamic one that carries an amount. Unknown tags are kept
// byte for byte and in their order. It must not draw images, use the network, or
// know whose code it is.
//
// A code is a sequence of objects: two digits of tag, two digits of length, a
// value. Lengths count characters while the checksum runs over the bytes of
// their UTF-8, and some values are themselves sequences of objects (templates).
package qris
