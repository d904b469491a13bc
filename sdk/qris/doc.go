// Package qris owns the text of QRIS codes, Indonesia's profile of EMVCo
// merchant-presented codes: it reads them, judges them, and turns a merchant's
// static code into a dynamic one that carries an amount. Tags that it does not
// know are kept byte for byte and in their order. It must not draw images,
// speak to anybody, or know whose code it is.
//
// A code is a row of objects: two digits of tag, two digits of length, a
// value. Lengths count characters while the checksum runs over the bytes of
// their UTF-8, and some values are themselves rows of objects (templates).
package qris
