// Package mail owns the mails of this gateway: what a receipt says, and how a
// mail is handed to an SMTP server, once, with the server's answer sorted into
// sent, later or never. It is the door for go-mail. It must not know SQL, queues
// or schedules: whoever has it send says when to try again.
package mail
