package signin

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"fmt"
	"image"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"

	"github.com/seed-f006e74d/gerbang/tenants"
)

// A code is good in its own 30 seconds and in those before and after.
const stepSeconds = 30

// stepOf is the time step in which a code is right, 0 where it is wrong now.
func stepOf(secret, code string, now time.Time) int64 {
	code = strings.ReplaceAll(code, " ", "")
	var found int64
	for _, step := range []int64{now.Unix()/stepSeconds - 1, now.Unix() / stepSeconds, now.Unix()/stepSeconds + 1} {
		right, err := totp.GenerateCode(secret, time.Unix(step*stepSeconds, 0))
		if err == nil && subtle.ConstantTimeCompare([]byte(right), []byte(code)) == 1 {
			found = step
		}
	}
	return found
}

// Factor is a second factor that is being set up.
type Factor struct {
	Secret string // base32, as authenticator apps take it
	Sealed []byte // the secret, to be kept meanwhile
	url    string
}

// beingSetUp is whose a sealed secret is until there is a person.
func beingSetUp(email string) string { return "being set up by " + email }

// NewFactor draws a second factor for whoever has an address.
func (s *SignIn) NewFactor(issuer, email string) (Factor, error) {
	key, err := totp.Generate(totp.GenerateOpts{Issuer: issuer, AccountName: email, SecretSize: 20, Rand: rand.Reader})
	if err != nil {
		return Factor{}, fmt.Errorf("signin: second factor: %w", err)
	}
	sealed, err := s.vault.SealTOTP(beingSetUp(email), []byte(key.Secret()))
	return Factor{key.Secret(), sealed, key.URL()}, err
}

// FactorOf is the factor that NewFactor drew for the same address.
func (s *SignIn) FactorOf(issuer, email string, sealed []byte) (Factor, error) {
	secret, err := s.vault.OpenTOTP(beingSetUp(email), sealed)
	if err != nil {
		return Factor{}, err
	}
	raw, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(string(secret))
	if err != nil {
		return Factor{}, fmt.Errorf("signin: second factor: %w", err)
	}
	key, err := totp.Generate(totp.GenerateOpts{Issuer: issuer, AccountName: email, Secret: raw})
	if err != nil {
		return Factor{}, fmt.Errorf("signin: second factor: %w", err)
	}
	return Factor{key.Secret(), sealed, key.URL()}, nil
}

// Image is the factor as a QR code, for an authenticator app to scan.
func (f Factor) Image() (image.Image, error) {
	key, err := otp.NewKeyFromURL(f.url)
	if err != nil {
		return nil, fmt.Errorf("signin: second factor: %w", err)
	}
	return key.Image(240, 240)
}

// recoveryCodes is how many there are.
const recoveryCodes = 10

// newRecoveryCodes draws codes of 80 bits, as they are shown and as they are kept.
func newRecoveryCodes() (shown []string, kept []tenants.Hash) {
	for range recoveryCodes {
		var raw [10]byte
		_, _ = rand.Read(raw[:]) // never fails
		text := strings.ToLower(base32.StdEncoding.EncodeToString(raw[:]))
		shown = append(shown, text[:4]+"-"+text[4:8]+"-"+text[8:12]+"-"+text[12:])
		kept = append(kept, recoveryHash(text))
	}
	return shown, kept
}

// recoveryHash is what is kept of a code, however it is written.
func recoveryHash(code string) tenants.Hash {
	code = strings.ToLower(strings.NewReplacer("-", "", " ", "").Replace(code))
	return sha256.Sum256([]byte(code))
}

// looksLikeTOTP tells a time-based code from a recovery code.
func looksLikeTOTP(code string) bool {
	digits := strings.ReplaceAll(code, " ", "")
	return len(digits) == 6 && strings.Trim(digits, "0123456789") == ""
}
