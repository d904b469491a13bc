// Package store is the only door to the database: one method for each business
// transaction, the same SQL on CockroachDB and PostgreSQL. A transaction of movements,
// adjustments or exceptions is one statement composed of the fragments in fragments/, one
// for each table it writes, with its values in parameters.go; STATEMENTS.md writes all of
// them out. Reads and all other writes live in queries/, the tables in migrations/, and
// dbsqlc/ is generated from both. Overrides and administration take several statements.
// It decides nothing about money: a movement.Change says what is committed, and which
// state the movement must still have. No method calls anything but the database.
package store
