//go:build ignore

// How a merchant's server verifies a callback, with the standard library alone:
// take verifySvc or verifyWebhook. Either is enough to know where a callback
// comes from; verifyWebhook also refuses what is older than five minutes, and
// remember the webhook-id to recognise a repetition.
//
//	CALLBACK_SECRET=whsec_... go run verify.go HEADERS-FILE BODY-FILE
//
// During a rotation CALLBACK_SECRET holds both secrets, with a space between.
package main

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"time"
)

// verifySvc checks X-Svc-Signature. The body must be the received bytes, before
// any JSON is parsed; the key is the whole secret, whsec_ included.
func verifySvc(header http.Header, body []byte, secrets []string) bool {
	given, err := hex.DecodeString(header.Get("X-Svc-Signature"))
	if err != nil {
		return false
	}
	for _, secret := range secrets {
		if hmac.Equal(given, mac([]byte(secret), body)) {
			return true
		}
	}
	return false
}

// verifyWebhook checks the headers of Standard Webhooks. The key is what comes
// after whsec_, decoded.
func verifyWebhook(header http.Header, body []byte, secrets []string, now time.Time) bool {
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if id == "" || err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	signed := append([]byte(id+"."+timestamp+"."), body...)
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(key) == 0 {
			continue
		}
		want := "v1," + base64.StdEncoding.EncodeToString(mac(key, signed))
		for _, given := range strings.Fields(header.Get("webhook-signature")) {
			if hmac.Equal([]byte(given), []byte(want)) {
				return true
			}
		}
	}
	return false
}

func mac(key, text []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(text)
	return h.Sum(nil)
}

func main() {
	secrets := strings.Fields(os.Getenv("CALLBACK_SECRET"))
	if len(os.Args) != 3 || len(secrets) == 0 {
		fmt.Fprintln(os.Stderr, "usage: CALLBACK_SECRET=whsec_... go run verify.go HEADERS-FILE BODY-FILE")
		os.Exit(2)
	}
	text, err := os.ReadFile(os.Args[1])
	if err == nil {
		text = append(bytes.TrimSpace(text), "\r\n\r\n"...)
	}
	header, parseErr := textproto.NewReader(bufio.NewReader(bytes.NewReader(text))).ReadMIMEHeader()
	body, bodyErr := os.ReadFile(os.Args[2])
	if err != nil || parseErr != nil || bodyErr != nil {
		fmt.Fprintln(os.Stderr, "the files can't be read")
		os.Exit(2)
	}
	svc := verifySvc(http.Header(header), body, secrets)
	webhook := verifyWebhook(http.Header(header), body, secrets, time.Now())
	fmt.Println("X-Svc-Signature:", word(svc))
	fmt.Println("webhook-signature:", word(webhook))
	if !svc || !webhook {
		os.Exit(1)
	}
}

func word(ok bool) string {
	if ok {
		return "right"
	}
	return "wrong"
}
