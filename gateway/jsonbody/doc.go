// Package jsonbody is the one strict reader of JSON that others send. It takes one
// object: no name twice, no invalid UTF-8, no NUL character, nothing after it, and
// bounded depth and numbers. A fault names the field and the byte and never repeats
// what stands there, because it may be a key. It must not know what a request means.
package jsonbody
