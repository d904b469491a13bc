package digiflazz

import (
	"crypto/hmac"
	"crypto/md5"  //nolint:gosec // the upstream's choice
	"crypto/sha1" //nolint:gosec // the upstream's choice
	"encoding/hex"
	"strings"
)

// credentials are what an account has in common with the upstream.
type credentials struct{ username, key, secret string }

// What is signed instead of a reference.
const signPriceList = "pricelist"

// sign signs a request by the one thing in it that the upstream chose.
func (c credentials) sign(what string) string {
	sum := md5.Sum([]byte(c.username + c.key + what)) //nolint:gosec // the upstream's choice
	return hex.EncodeToString(sum[:])
}

// signed reports whether a webhook's body was signed with the account's secret.
func (c credentials) signed(header string, body []byte) bool {
	digits, ok := strings.CutPrefix(header, "sha1=")
	given, err := hex.DecodeString(digits)
	if !ok || err != nil {
		return false
	}
	mac := hmac.New(sha1.New, []byte(c.secret))
	mac.Write(body)
	return hmac.Equal(given, mac.Sum(nil))
}
