// Package console is the operators' listener: the admin API of package adminapi,
// metrics, health and readiness. It owns who an operator is, what an operator may
// change and how that is audited, and is the door to Prometheus. It must not decide
// about money, never shows a secret twice, and no merchant's name is ever a metric's
// label.
package console
