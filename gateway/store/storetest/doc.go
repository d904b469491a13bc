// Package storetest holds every store of movements to the same answers: stories whose
// results are written out in testdata, and random calls on two stores at once.
package storetest
