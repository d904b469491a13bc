package app

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/mail"
	"github.com/seed-f006e74d/gerbang/gateway/worker"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// wirePostman makes what sends mails, and returns what has it look at once. Both
// are nil where no SMTP server is configured.
func (a *App) wirePostman(replica string) (mailed func(), err error) {
	if a.config.SMTP.Host == "" {
		return nil, nil
	}
	sender, err := mail.New(a.config.SMTP.letters())
	if err != nil {
		return nil, fmt.Errorf("config: smtp: %w", err)
	}
	a.postman = worker.NewPostman(a.store, sender, worker.NewShare(a.store, "mail", replica), a.log)
	return a.postman.Wake, nil
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
		content, err := os.ReadFile(c.PasswordFile)
		if err != nil {
			return fmt.Errorf("smtp: password_file: %w", err)
		}
		c.password = tenants.NewSecret(strings.TrimSpace(string(content)))
	}
	if err := c.letters().Check(); err != nil {
		return fmt.Errorf("smtp: %w", err)
	}
	return nil
}

func (c *SMTPConfig) letters() mail.Config {
	return mail.Config{Host: c.Host, Port: c.Port, From: c.From, User: c.User, Password: c.password.Reveal(), TLS: mail.TLS(c.TLS)}
}
