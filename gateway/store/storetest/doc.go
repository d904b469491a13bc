// Package storetest holds every store of movements to the same answers. It owns the
// stories whose results are written out in testdata, and random calls that are made of
// two stores at once. It must not know how a store keeps what it is given.
package storetest
