// Package lifecycle owns the steps of a movement's life. So far it has the poller,
// which has movements resolved when they are due. It must know no kind of
// operation, and decides nothing about money: package movement does.
package lifecycle
