// Package lifecycle takes a movement through the four steps of its life, for every
// kind alike: reserve, submit, apply, poll. It commits the intent before the act,
// hands the call to the provider, takes in every fact by [movement.Apply], and asks
// how open movements stand. It must not know kinds, SQL, processes, or HTTP beyond
// what a notification carries.
//
// A creation:
//
//  1. reserve commits the reference and all that the movement takes.
//  2. submit hands the call to the provider, outside of any transaction.
//  3. apply commits what the provider's word leads to.
//  4. The merchant is answered by the rules of the kind.
//
// What a kind adds stands in its [Kind].
package lifecycle
