package app

import (
	"errors"
	"fmt"

	"github.com/seed-f006e74d/gerbang/gateway/mail"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// wireOutbox makes what sends mails, and returns what wakes it. Both are nil where
// no SMTP server is configured.
func (a *App) wireOutbox(replica string) (mailed func(), err error) {
	if a.config.SMTP.Host == "" {
		return nil, nil
	}
	sender, err := mail.New(a.config.SMTP.server())
	if err != nil {
		return nil, fmt.Errorf("config: smtp: %w", err)
	}
	a.outbox = mail.NewOutbox(a.store, sender.Send, a.vault, a.leases("mails", replica), a.log)
	return a.outbox.Wake, nil
}

// check reads the password and says what is wrong with the whole.
func (c *SMTPConfig) check() error {
	if c.Host == "" {
		if *c != (SMTPConfig{}) {
			return errors.New("smtp: host: must be given with the rest")
		}
		return nil
	}
	if c.PasswordFile != "" {
		password, err := readSecretFile(c.PasswordFile)
		if err != nil {
			return fmt.Errorf("smtp: password_file: %w", err)
		}
		c.password = tenants.NewSecret(password)
	}
	if err := c.server().Check(); err != nil {
		return fmt.Errorf("smtp: %w", err)
	}
	return nil
}

func (c *SMTPConfig) server() mail.Config {
	return mail.Config{Host: c.Host, Port: c.Port, From: c.From, User: c.User, Password: c.password.Reveal(), TLS: mail.TLS(c.TLS)}
}
