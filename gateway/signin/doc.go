// Package signin owns the people who use the consoles: how they are invited, how they
// prove who they are (a password and a time-based code, or a recovery code in its place),
// what their role lets them do, and when that ends. It must not know HTTP or SQL.
//
// A person signs in with an email address, a password of at least 12 characters, kept as
// argon2id, and a TOTP code, whose secret is kept sealed. A code counts once. After ten
// failures a person waits a minute, so that nobody guesses codes; an address that fails
// often waits, too. Ten recovery codes, of which each counts once, are shown when the
// second factor is set up, until their owner says that they are kept.
//
// An invitation lives seven days and is good once; one to the same address replaces it. A
// link to a new password lives thirty minutes, and wants a code, too. Both are 260 random
// bits, of which the hash is kept. A mail that holds one is sealed with the keyset until it
// is sent or given up, and then removed: who reads the database, or a backup of it, can't
// use it. Mails are in the language of the browser with which their reader has joined.
//
// A browser is known to a person for 30 days after they have signed in with it, by a sealed
// cookie. A sign-in with another one is reported by mail. Addresses are not compared: those of
// phones change by the hour, and a mail that comes every day is read by nobody.
//
// An operator may also be proven by an identity provider (package identity), in place of
// password and code, and prove themselves anew there where a fresh code is needed: by the one
// account there that they have linked after a code of their own, so that an address that is
// given to somebody else opens nothing. They are in by an invitation like anybody: the
// provider says who somebody is, never what they may do. Password and second factor stay
// theirs, for the day on which it is down.
//
// A merchant's developers and owners are mailed, at most once a day and mode when a
// callback ends undelivered, and at most once a day for each right key that is refused.
//
// Sign-ins, sign-outs, used recovery codes, new ones, new passwords and linked accounts are audited at each
// merchant that the person belongs to (the platform is one). Where they belong to several,
// the platform's entry alone says from where, so that no merchant learns where somebody
// works for another one. Refused sign-ins are, too, where
// the address is somebody's: one entry a person, reason and hour, which counts. So no flood
// fills the audit; of addresses that nobody has only the log tells.
//
// What somebody may do is read anew with every request, so that a role that is taken away
// ends at once. A person's epoch is in each session: it rises with a new password and a
// changed role, which ends all sessions.
package signin
