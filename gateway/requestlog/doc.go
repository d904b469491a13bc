// Package requestlog keeps what merchants asked and what they were answered, for seven days: masked, packed, and sealed for the merchant
// whose calls they are. It keeps what fits into its memory and counts what does not. A replica that is killed loses the last second, and
// what waits while the database is away. It must decide nothing about a request, and hold none up.
package requestlog
