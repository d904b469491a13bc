package mail

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Vault seals and opens mails.
type Vault interface {
	SealPersonal(column, id string, plaintext []byte) ([]byte, error)
	OpenPersonal(column, id string, sealed []byte) ([]byte, error)
}

// envelope is what is sealed of a mail.
type envelope struct{ To, Subject, Text string }

// Seal makes a mail that only the keyset can read, until it is sent: it holds a link that
// lets somebody in. It opens under its own id alone, and has no address meanwhile, so that
// a replica of a version without Open gives it up rather than sending what nobody can read.
func Seal(v Vault, m movement.Mail) (movement.Mail, error) {
	plain, err := json.Marshal(envelope{m.To, m.Subject, m.Text})
	if err != nil {
		return movement.Mail{}, fmt.Errorf("mail: seal: %w", err)
	}
	sealed, err := v.SealPersonal(tenants.ColumnMail, m.ID.String(), plain)
	return movement.Mail{ID: m.ID, Until: m.Until, Text: base64.StdEncoding.EncodeToString(sealed)}, err
}

// open is a mail as it was before Seal. Others are as they are.
func open(v Vault, m movement.Mail) (movement.Mail, error) {
	if m.To != "" {
		return m, nil
	}
	sealed, err := base64.StdEncoding.DecodeString(m.Text)
	if err != nil {
		return m, err
	}
	plain, err := v.OpenPersonal(tenants.ColumnMail, m.ID.String(), sealed)
	if err != nil {
		return m, err
	}
	var e envelope
	err = json.Unmarshal(plain, &e)
	return movement.Mail{ID: m.ID, To: e.To, Subject: e.Subject, Text: e.Text}, err
}
