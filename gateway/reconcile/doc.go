// Package reconcile reads the statements of providers' accounts and matches their
// lines with collections. Each step is a commit that the next reading finds: lines
// with the cursor, a line with its collection, the collection's end, the line's. It
// changes no movement itself: what a line means is a fact for package lifecycle. It
// must know no provider.
package reconcile
