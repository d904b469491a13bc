// Package identity asks an OpenID Connect provider who somebody is: by an authorization
// code with PKCE, a state and a nonce that are good once, for ten minutes. It judges what
// the provider says: signature, issuer, audience, expiry and nonce of the ID token, that
// the email address is verified and of a domain that the provider is believed about, and,
// where a fresh proof is asked for, that the person has just given it (auth_time).
//
// The provider is looked up when somebody first signs in, by one visitor for all and at most
// every five seconds while that fails, and each call ends after five seconds, so that a gateway starts and serves without it.
//
// It must not know people or roles: what somebody may do is package signin's.
package identity
