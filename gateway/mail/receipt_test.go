package mail_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/mail"
)

var paid = mail.Receipt{
	Merchant: "Warung Sentosa", Reference: "INV-1", Description: "Dua kopi", Amount: 25017,
	PaidAt: time.Date(2026, 11, 20, 20, 30, 0, 0, time.UTC), Language: "en",
}

func TestReceipt(t *testing.T) {
	t.Parallel()
	const want = `Warung Sentosa has received your payment. Thank you.

Amount:     Rp25.017
Paid:       21 November 2026, 03:30:00 WIB
Reference:  INV-1
For:        Dua kopi

This message was sent by a machine; answers to it are not read.
`
	subject, got := paid.Render()
	if got != want {
		t.Errorf("got\n%s", got)
	}
	if subject != "Receipt from Warung Sentosa: Rp25.017" {
		t.Errorf("subject %q", subject)
	}
	test := paid
	test.Test, test.Description = true, ""
	subject, text := test.Render()
	if !strings.HasPrefix(text, "This is a test. No money has moved.\n\n") || strings.Contains(text, "For:") {
		t.Errorf("of test mode\n%s", text)
	}
	if subject != "[Test] Receipt from Warung Sentosa: Rp25.017" {
		t.Errorf("subject %q", subject)
	}
}

func TestReceiptInIndonesian(t *testing.T) {
	t.Parallel()
	const want = `Ini hanya uji coba. Tidak ada uang yang berpindah.

Warung Sentosa telah menerima pembayaran Anda. Terima kasih.

Jumlah:     Rp25.017
Dibayar:    1 Agustus 2026, 03:30:00 WIB
Referensi:  INV-1
Keterangan: Dua kopi

Pesan ini dikirim oleh mesin; balasannya tidak dibaca.
`
	r := paid
	r.Language, r.Test, r.PaidAt = "", true, time.Date(2026, 7, 31, 20, 30, 0, 0, time.UTC)
	subject, got := r.Render()
	if got != want {
		t.Errorf("got\n%s", got)
	}
	if subject != "[Test] Bukti pembayaran ke Warung Sentosa: Rp25.017" {
		t.Errorf("subject %q", subject)
	}
}

// TestTextsOfOthersKeepToTheirLine: nobody writes lines of a receipt that are not
// the gateway's.
func TestTextsOfOthersKeepToTheirLine(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"lines":        "a\r\n\r\nAmount: Rp0\u2028b\u0085c\vd",
		"not UTF-8":    "a\xff\nb",
		"long":         strings.Repeat("é", 5000),
		"turned round": "a\u202eb\u200bc",
	} {
		r := paid
		r.Merchant, r.Reference, r.Description = text, text, text
		_, whole := paid.Render()
		subject, text := r.Render()
		if got, want := strings.Count(text, "\n"), strings.Count(whole, "\n"); got != want {
			t.Errorf("%s: %d lines, want %d:\n%s", name, got, want, text)
		}
		if strings.ContainsAny(subject, "\r\n\u2028\u202e\u200b") || len(subject) > 600 || len(text) > 2000 {
			t.Errorf("%s: subject %q", name, subject)
		}
	}
}
