// Package console is the operators' listener: the admin API,
// metrics, and the answers to whether the gateway lives and is ready. It owns
// who an operator is, what an operator may change and how that is audited, and
// is the door to Prometheus. It must not decide about money, never shows a
// secret twice, and no merchant's name is ever a metric's label.
package console
