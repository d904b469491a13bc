// Package dev is `gerbang dev`: a database, the upstreams' simulators, a whole
// gateway and two demo merchants in one supervised tree, on loopback alone. It
// uses the same doors as everybody else: the gateway's own wiring, and the
// admin API for merchants and connections. It must hold nothing that a gateway
// in production needs.
package dev
