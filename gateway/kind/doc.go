// Package kind has one page for each kind of movement: payment, collection, order,
// transfer. A page reads from top to bottom and says all that is particular to its
// kind; the rules of money themselves are values of package movement. Kinds do not
// know one another, SQL or HTTP, and never change a state: package lifecycle does.
package kind
