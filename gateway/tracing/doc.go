// Package tracing follows a request through the gateway's rooms, with OpenTelemetry. Its
// traces tell what took how long, and hold no body, key or text of a merchant or a payer:
// ids, routes and codes alone, as logs do. A room begins its part by [Start], which does
// nothing where the request is not traced, so that tracing that is off costs a look into
// the context.
//
// Plugins reach no collector. What they ask of their upstream they tell in their answers,
// and package host notes it by [Past].
package tracing
