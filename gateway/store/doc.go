// Package store is the only door to the database: one method for each business
// transaction, the same SQL on CockroachDB and PostgreSQL. The statements live
// in queries/, the tables in migrations/, and dbsqlc/ is generated from both.
// It decides nothing about money; callers say which state a movement must still
// have, and are told whether it had. No method calls anything but the database.
package store
