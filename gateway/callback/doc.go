// Package callback owns how one callback is sent to one receiver: its headers
// and signatures, the wall that lets no connection through to an address that
// is not public, the time it may take, what its answer means, when it is tried
// again, and how receivers are kept from delaying one another. It is the door
// for code.dny.dev/ssrf and the Standard Webhooks library. It must not know
// SQL, the records of merchants, or what an event means, and it keeps nothing
// that a restart would miss.
//
// # The wall
//
// A callback goes over https to a public address, on port 443 or 8443. What a
// URL shows by itself is judged by [CheckURL]; where it leads is judged when the
// connection is made, on the concrete address, after name resolution, for every
// connection. So a name that leads to a public address today and to a private
// one tomorrow is delivered to today and refused tomorrow, and of several
// addresses each is judged alone. Connections are kept and used again; they stay
// with the address that was judged.
//
// Refused are, in every notation that reaches a socket: loopback, private,
// link-local (the metadata services are there), carrier NAT, multicast,
// documentation, benchmarking and reserved ranges, and every IPv6 address
// outside 2000::/3 or in a range that carries an IPv4 address (mapped,
// compatible, NAT64, 6to4, Teredo). An operator adds networks of its own.
//
// In development http, loopback and any port are allowed too, and nothing else.
package callback
