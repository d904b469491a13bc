// Package memory is a store in memory for tests, with the guards and the answers of
// package store. Package storetest holds both to the same. It must not be used where
// data has to survive a process.
package memory
