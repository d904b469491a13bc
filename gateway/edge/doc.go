// Package edge owns the merchants' listener: routes, decoding, authentication,
// rendering of answers and errors, the checkout pages, and the route on which
// providers notify. Each request is parsed once and judged in one order: path
// and method, size, JSON, key, scope and standing, schema, admission; then the
// engine runs it. It must not know SQL, plugins or what an operation means; it
// reaches everything else through the small interfaces that it declares.
package edge
