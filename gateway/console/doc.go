// Package console is the operators' listener: the admin API of package adminapi,
// metrics, health and readiness. It owns who an operator is, what an operator may
// change and how that is audited, and is the door to Prometheus. It must not decide
// about money, never shows a secret twice, and no merchant's name is ever a metric's
// label.
//
// Each operator has a role, and roles.go is the table of what a role may do: a line for
// each route, held before the route's handler is asked. A route without a line is refused
// to everybody. A request comes from the network with a token, or from this process with
// an [Identity] ([Console.As]). Tokens stand in the configuration, or in the database by
// their hash and under a MAC. All meet the same roles, checks and audit.
package console
