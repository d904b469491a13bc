// Package edge owns the merchants' listener: routes, decoding, authentication,
// rendering of answers and errors, the checkout pages, and the route for providers'
// notifications. Each request is parsed once and checked in one order: path and
// method, size, JSON, key, scope and standing, schema, admission. Then it runs by
// the operation's kind. The package must not know SQL, plugins or what an operation
// means; it reaches everything else through the small interfaces that it declares.
package edge
