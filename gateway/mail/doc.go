// Package mail owns the mails of this gateway: what they say (in texts), the outbox that
// sends what is due, and how a mail is handed to an SMTP server. It is the door for
// go-mail. It must not know SQL, and it keeps and logs none of a mail server's words:
// they may name the payer.
package mail
