// Package callback owns how callback events reach merchants: the dispatcher that
// sends what is due, the endpoint lanes that keep receivers from delaying one
// another, headers and signatures and how they are verified, and the egress guard
// that lets no connection through to an address that is not public. It is the door
// for code.dny.dev/ssrf and the Standard Webhooks library. It must not know SQL, the
// records of merchants, or what an event means, and it keeps nothing that a restart
// would miss.
//
// # The egress guard
//
// A callback goes over https to a public address, on port 443 or 8443. What a
// URL shows by itself is checked by [CheckURL]; where it leads is checked when the
// connection is made, on the concrete address, after name resolution, for every
// connection. So a name that leads to a public address today and to a private
// one tomorrow is delivered to today and refused tomorrow, and of several
// addresses each is checked alone. Connections are kept and used again; they stay
// with the address that was checked.
//
// Refused are, in every notation that reaches a socket: loopback, private,
// link-local (the metadata services are there), carrier NAT, multicast,
// documentation, benchmarking and reserved ranges, and every IPv6 address
// outside 2000::/3 or in a range that carries an IPv4 address (mapped,
// compatible, NAT64, 6to4, Teredo). An operator adds networks of its own.
//
// In development http, loopback and any port are allowed too, and nothing else.
package callback
