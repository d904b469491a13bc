package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/textproto"

	smtp "github.com/wneessen/go-mail"
)

// Fault is why a mail was not sent: a phrase of ours, and the codes of the mail
// server's reply. The server's own text is never part of it, because it may name
// the payer. So a fault may be kept, logged and shown to operators.
type Fault struct {
	Reason    string
	Permanent bool   // no further attempt can do better: the recipient is no address, or is refused for good
	Code      int    // the SMTP reply code, 0 where there was none
	Status    string // the enhanced status code, such as 5.1.1, or empty
}

// Error is the reason with the codes that there are.
func (f *Fault) Error() string {
	switch {
	case f.Code == 0:
		return f.Reason
	case f.Status == "":
		return fmt.Sprintf("%s (SMTP %d)", f.Reason, f.Code)
	}
	return fmt.Sprintf("%s (SMTP %d, %s)", f.Reason, f.Code, f.Status)
}

// connectFault is why there was no session with the server.
func connectFault(ctx context.Context, err error) *Fault {
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	operation, network := errors.AsType[*net.OpError](err)
	reply, replied := errors.AsType[*textproto.Error](err)
	switch {
	case replied:
		return &Fault{Reason: "the mail server did not accept the session or the login", Code: reply.Code}
	case ctx.Err() != nil:
		return &Fault{Reason: tooLate}
	case certificate:
		return &Fault{Reason: "the mail server's TLS certificate is not accepted"}
	case network && operation.Op == "dial":
		return &Fault{Reason: "the mail server could not be reached"}
	}
	return &Fault{Reason: "the mail server hung up, or does not offer the TLS or the login that is configured"}
}

const tooLate = "the mail server did not answer in time"

// sendFault is why the server did not take a mail.
func sendFault(ctx context.Context, err error) *Fault {
	refusal, ok := errors.AsType[*smtp.SendError](err)
	switch {
	case ok && refusal.ErrorCode() != 0:
	case ctx.Err() != nil:
		return &Fault{Reason: tooLate}
	default:
		return &Fault{Reason: "the connection to the mail server was cut"}
	}
	f := &Fault{Reason: "the mail server did not accept the mail", Code: refusal.ErrorCode(), Status: refusal.EnhancedStatusCode()}
	switch refusal.Reason { //nolint:exhaustive // the others are about the mail
	case smtp.ErrSMTPMailFrom:
		f.Reason = "the mail server did not accept the sender"
	case smtp.ErrSMTPRcptTo:
		f.Reason = "the mail server did not accept the recipient"
		f.Permanent = f.Code >= 500 && f.Code < 600
	}
	return f
}
