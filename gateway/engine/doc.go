// Package engine runs one operation by the rules of its kind: it claims before
// anything is sent, hands the call to the provider, settles what came back, and
// finds out what became of calls that nobody answered. Notifications, lookups
// and the worker all end in its one function that changes a movement's state.
// It must not know SQL, processes, or HTTP beyond what a notification carries;
// it declares the small interfaces that it needs of them.
package engine
