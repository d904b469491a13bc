package mail

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"strconv"
	"strings"
	"time"

	smtp "github.com/wneessen/go-mail"
)

// TLS is how a connection to an SMTP server is kept from other eyes.
type TLS string

// The ways. StartTLS is never left out because a server does not offer it.
const (
	StartTLS TLS = "starttls"
	Implicit TLS = "implicit"
	NoTLS    TLS = "none"
)

// Config is the SMTP server that takes the mails.
type Config struct {
	Host     string
	Port     int // the usual one of the way when zero
	From     string
	User     string // "" for a server that asks for nobody
	Password string
	TLS      TLS // StartTLS when empty
}

// The usual ports.
const (
	portStartTLS = 587
	portImplicit = 465
	portNoTLS    = 25
)

// way is the configuration's way to keep a secret, with its usual port.
func (c Config) way() (option smtp.Option, port int, err error) {
	switch c.TLS {
	case StartTLS, "":
		return smtp.WithTLSPolicy(smtp.TLSMandatory), portStartTLS, nil
	case Implicit:
		return smtp.WithSSL(), portImplicit, nil
	case NoTLS:
		return smtp.WithTLSPolicy(smtp.NoTLS), portNoTLS, nil
	}
	return nil, 0, fmt.Errorf("tls: must be one of %s, %s, %s", StartTLS, Implicit, NoTLS)
}

// Address is where the server is asked, host:port.
func (c Config) Address() string {
	_, port, _ := c.way() // Check has refused another way
	return net.JoinHostPort(c.Host, strconv.Itoa(cmp.Or(c.Port, port)))
}

// Check says what is wrong with a configuration, all at once.
func (c Config) Check() error {
	var faults []error
	if c.Host == "" || strings.ContainsAny(c.Host, "/ :") && !strings.HasPrefix(c.Host, "[") {
		faults = append(faults, errors.New("host: must be the name or address of an SMTP server"))
	}
	if c.Port < 0 || c.Port > 65535 {
		faults = append(faults, errors.New("port: must be from 1 to 65535"))
	}
	if _, err := netmail.ParseAddress(c.From); err != nil {
		faults = append(faults, errors.New("from: must be a mail address, such as Receipts <receipts@example.com>"))
	}
	if _, _, err := c.way(); err != nil {
		faults = append(faults, err)
	}
	if (c.User == "") != (c.Password == "") {
		faults = append(faults, errors.New("user and a password: both must be given, or neither"))
	}
	if c.TLS == NoTLS && c.User != "" {
		faults = append(faults, errors.New("tls: a password is not sent without it"))
	}
	return errors.Join(faults...)
}

// Message is one mail. Its id stays the same however often it is sent.
type Message struct {
	ID      string
	At      time.Time // when what it is about was
	To      string
	Subject string
	Text    string
}

// sendTimeout bounds one attempt from the connection to the server's word.
const sendTimeout = 30 * time.Second

// Sender hands mails to one SMTP server. Any number of goroutines may use it.
type Sender struct {
	config Config
	from   *netmail.Address
}

// New makes a sender. It connects to nothing yet.
func New(c Config) (*Sender, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	from, err := netmail.ParseAddress(c.From)
	if err != nil {
		return nil, err
	}
	return &Sender{config: c, from: from}, nil
}

// Send hands one mail over, on a connection of its own. Nil means that the server
// has taken it. Every error is a [*Fault]; unless it is permanent, the server may
// have the mail or not.
func (s *Sender) Send(ctx context.Context, m Message) error {
	message, err := s.message(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	client, err := s.client(ctx)
	if err != nil {
		return &Fault{Reason: "the configuration of the mail server is not usable"}
	}
	if err := client.DialWithContext(ctx); err != nil {
		return connectFault(ctx, err)
	}
	defer client.Close() // what the server says after it has taken the mail changes nothing
	if err := client.Send(message); err != nil && !message.IsDelivered() {
		return sendFault(ctx, err)
	}
	return nil
}

// client is a connection to be, which is cut when the context ends.
func (s *Sender) client(ctx context.Context) (*smtp.Client, error) {
	way, port, err := s.config.way()
	if err != nil {
		return nil, err
	}
	if s.config.Port != 0 {
		port = s.config.Port
	}
	options := []smtp.Option{way, smtp.WithPort(port), smtp.WithTimeout(sendTimeout), smtp.WithDialContextFunc(s.dialUntil(ctx))}
	if _, domain, ok := strings.Cut(s.from.Address, "@"); ok {
		options = append(options, smtp.WithHELO(domain)) // not the machine's name
	}
	if s.config.User != "" {
		options = append(options, smtp.WithSMTPAuth(smtp.SMTPAuthAutoDiscover),
			smtp.WithUsername(s.config.User), smtp.WithPassword(s.config.Password))
	}
	return smtp.NewClient(s.config.Host, options...)
}

// dialUntil connects, and cuts the connection when a context ends: of sending, the
// library knows no other end than its timeout.
func (s *Sender) dialUntil(ending context.Context) smtp.DialContextFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		dial := (&net.Dialer{}).DialContext
		if s.config.TLS == Implicit {
			secure := tls.Dialer{Config: &tls.Config{ServerName: s.config.Host, MinVersion: tls.VersionTLS12}}
			dial = secure.DialContext
		}
		conn, err := dial(ctx, network, address)
		if err == nil {
			context.AfterFunc(ending, func() { _ = conn.Close() }) // it may be closed already
		}
		return conn, err
	}
}

func (s *Sender) message(in Message) (*smtp.Msg, error) {
	to, err := netmail.ParseAddress(in.To)
	if err != nil {
		return nil, &Fault{Reason: "the recipient is no mail address", Permanent: true}
	}
	m := smtp.NewMsg(smtp.WithNoDefaultUserAgent())
	m.FromMailAddress(s.from)
	// The address alone: a name in it would be its writer's.
	m.ToMailAddress(&netmail.Address{Address: to.Address})
	m.Subject(line(in.Subject))
	m.SetDateWithValue(in.At)
	_, domain, _ := strings.Cut(s.from.Address, "@")
	m.SetMessageIDWithValue(in.ID + "@" + domain)
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.SetBodyString(smtp.TypeTextPlain, in.Text)
	html, err := htmlOf(in)
	if err != nil {
		return nil, &Fault{Reason: "the mail has no HTML"}
	}
	m.AddAlternativeString(smtp.TypeTextHTML, html)
	return m, nil
}
