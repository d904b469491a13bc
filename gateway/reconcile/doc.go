// Package reconcile owns how providers' statements are read and compared with our
// movements. So far it has the reader, which has every account's statement read
// often enough. It must know no provider, and no kind of operation.
package reconcile
