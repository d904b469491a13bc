// Package list keeps the lists that operators change by the hour, beside the policies that read them: blocked destinations,
// trusted merchants, products that are sold out. A list's name ends in what it holds, and its entries are keyed hashes of
// the one form of a value, so that no text of a policy, of the database or of a dump has a payer's mail or an account. Every
// replica has all of them in memory, and learns of a change within a second; rules see the names of the lists that hold
// something of a request as input.lists.
package list
