// Package dbsqlc is the statements of gateway/store/queries as Go functions,
// made by sqlc and written anew by make generate. It owns the rows' types and
// nothing else: what a row means, and what is done when a statement fails, is
// gateway/store's affair. Nothing but gateway/store may import it, and this file
// alone is written by hand.
package dbsqlc
