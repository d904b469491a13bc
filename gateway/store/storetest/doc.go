// Package storetest holds every store of movements to the same answers. Stories have
// their results written out in testdata; random calls run on two stores at once. It must
// not know how a store keeps what it is given.
package storetest
