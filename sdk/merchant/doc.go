// Package merchant is the client of a merchant of Gerbang. It owns one method for each call
// of the API, retries that are safe, typed errors, and the verification of callbacks. It
// needs nothing but the standard library, and must not need anything else of this module.
//
// Types and methods are generated from the OpenAPI document. The same client is in
// typescript and in php.
package merchant

//go:generate go run ./generate ../../gateway/catalog/testdata/openapi.json .
