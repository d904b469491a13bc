// Package console is the operators' listener: the admin API of package adminapi,
// metrics, health and readiness. It owns who an operator is, what an operator may
// change and how that is audited, and is the door to Prometheus. It must not decide
// about money, never shows a secret twice, and no merchant's name is ever a metric's
// label.
//
// Each operator has a role, and roles.go says which permissions a role has. What an act takes
// is declared by its endpoint, and is held before its handler is asked; one that takes none is refused
// to everybody. A request comes from the network with a token, or from this process with
// an [Identity] ([Console.As]). Tokens stand in the configuration, or in the database by
// their hash and under a MAC. All meet the same roles, checks and audit.
package console
