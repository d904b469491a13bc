// Package rollout brings policy versions into force on every replica. It owns how a version is pushed, proposed, compiled by
// each live replica and then made the one in force, and how a replica follows that word. What a policy says, and who may
// change it, is decided elsewhere: it must not know HTTP, and it reads no directory.
//
// An activation is a proposal first. Every replica reads the head, one row, several times a second; it compiles what is
// proposed and answers. Whoever sees that all live replicas have compiled it moves the head, so an activation ends also when
// the gateway that took it is gone. A replica that can't compile it ends the activation, one that is silent for five seconds
// is named and passed over. Then every replica swaps, and one that can't goes on with what it has.
package rollout
