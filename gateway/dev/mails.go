package dev

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/http"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"time"
)

const mailsKeeps = 200

// mails keeps the last caught mails in memory.
type mails struct {
	now func() time.Time

	mu    sync.Mutex
	kept  []caught // the oldest first
	count int
}

// caught is one mail, as the catcher shows it to programs.
type caught struct {
	Number     int       `json:"number"` // from 1, in the order in which they came
	ReceivedAt time.Time `json:"received_at"`
	From       string    `json:"from"`
	To         []string  `json:"to"`
	Subject    string    `json:"subject"`
	MessageID  string    `json:"message_id"`
	Text       string    `json:"text"` // decoded
	Raw        string    `json:"raw"`  // as it came
}

func newMails() *mails { return &mails{now: time.Now} }

// keep reads a mail and keeps it in place of the oldest.
func (k *mails) keep(from string, to []string, raw []byte) {
	c := caught{ReceivedAt: k.now().UTC(), From: from, To: to, Raw: strings.ToValidUTF8(string(raw), "\uFFFD")}
	c.read(raw)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.count++
	c.Number = k.count
	k.kept = append(k.kept, c)
	k.kept = slices.Delete(k.kept, 0, max(0, len(k.kept)-mailsKeeps))
}

// read reads the mail, as far as it is one.
func (c *caught) read(raw []byte) {
	c.Text = c.Raw
	message, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return
	}
	c.MessageID = strings.Trim(message.Header.Get("Message-ID"), "<>")
	c.Subject = message.Header.Get("Subject")
	var words mime.WordDecoder
	if subject, err := words.DecodeHeader(c.Subject); err == nil {
		c.Subject = subject
	}
	body := message.Body
	// Of a mail in two forms the text is shown; its reader decodes it.
	if form, of, err := mime.ParseMediaType(message.Header.Get("Content-Type")); err == nil && form == "multipart/alternative" {
		part, err := multipart.NewReader(body, of["boundary"]).NextPart()
		if err != nil {
			return
		}
		body = part
	}
	switch strings.ToLower(message.Header.Get("Content-Transfer-Encoding")) {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	if text, err := io.ReadAll(body); err == nil {
		c.Text = strings.ToValidUTF8(strings.ReplaceAll(string(text), "\r\n", "\n"), "\uFFFD")
	}
}

// list returns the kept mails, newest first.
func (k *mails) list() []caught {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := make([]caught, 0, len(k.kept))
	for _, c := range slices.Backward(k.kept) {
		list = append(list, c)
	}
	return list
}

func (k *mails) asJSON(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff") // it repeats what strangers sent
	answer(w, http.StatusOK, k.list())
}

// At is the time of arrival, for people.
func (c caught) At() string { return c.ReceivedAt.Format("2 Jan 15:04:05") }

// Receivers are the mail's recipients, on one line.
func (c caught) Receivers() string { return strings.Join(c.To, ", ") }
