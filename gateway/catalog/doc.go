// Package catalog owns one immutable snapshot of what the gateway offers: every
// operation by its path, with compiled schemas, and the OpenAPI document made from
// them. A snapshot is built completely from the plugins' manifests and then
// swapped, so one request never sees two snapshots. It must not know HTTP,
// merchants or how an operation is run.
package catalog
