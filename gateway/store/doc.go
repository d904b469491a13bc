// Package store is the only door to the database: one method for each business
// transaction, the same SQL on CockroachDB and PostgreSQL. The statements live
// in queries/, the tables in migrations/, and dbsqlc/ is generated from both.
// It decides nothing about money: a movement.Change says what is committed, and which
// state the movement must still have. No method calls anything but the database.
package store
