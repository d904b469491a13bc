package callback

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"

	"github.com/seed-f006e74d/gerbang/gateway/mask"
)

// maxDetail is how much of a certificate's fault is shown.
const maxDetail = 200

// byStatus takes the outcome from the status of the answer.
func byStatus(status int, a *Attempt) {
	a.Status = status
	switch {
	case status >= 200 && status <= 299:
		a.end(Delivered, "")
	case status == http.StatusGone:
		a.end(Gone, "answered 410: nothing more is sent")
	case status >= 300 && status <= 399:
		a.end(Failed, fmt.Sprintf("answered %d: redirects are not followed", status))
	default:
		a.end(Failed, fmt.Sprintf("answered %d", status))
	}
}

// explain finds the words for a try without an answer. Errors of the network
// name addresses and resolvers of ours, so their own texts are not shown.
func (s *Sender) explain(caller context.Context, err error, a *Attempt) {
	switch {
	case caller.Err() != nil:
		a.end(Aborted, "stopped by the gateway before there was an answer")
	case byGuard(err):
		a.end(Refused, "the host does not lead to a public address")
	default:
		a.end(Failed, s.reason(err))
	}
}

func (s *Sender) reason(err error) string {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var notTLS tls.RecordHeaderError
	var operation *net.OpError
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return "the host name does not exist"
	case errors.As(err, &name):
		return "the host name could not be resolved"
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || isTimeout(err):
		return fmt.Sprintf("no answer within %s", s.timeout)
	case errors.As(err, &certificate):
		return mask.Clean("the TLS certificate is not accepted: "+certificate.Err.Error(), maxDetail)
	case errors.As(err, &notTLS):
		return "the receiver does not speak TLS"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE):
		return "the connection was closed without an answer"
	case errors.As(err, &operation) && operation.Op == "remote error":
		return "the TLS handshake failed"
	case errors.As(err, &operation) && operation.Op == "dial":
		return "no connection could be made"
	}
	return "no valid HTTP answer"
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
