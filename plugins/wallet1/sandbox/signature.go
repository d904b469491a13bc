package sandbox

import (
	"bytes"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
)

// keyBits is the size of RSA keys.
const keyBits = 2048

// bodyHash is the lower-case hexadecimal SHA-256 of the minified body. What is
// no JSON is taken as it came.
func bodyHash(body []byte) string {
	var minified bytes.Buffer
	if len(body) > 0 && json.Compact(&minified, body) == nil {
		body = minified.Bytes()
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// symmetricText is what is signed together with a token.
func symmetricText(method, path, token string, body []byte, timestamp string) string {
	return strings.Join([]string{method, path, token, bodyHash(body), timestamp}, ":")
}

// asymmetricText is what is signed without a token.
func asymmetricText(method, path string, body []byte, timestamp string) string {
	return strings.Join([]string{method, path, bodyHash(body), timestamp}, ":")
}

// symmetric signs with the secret that both sides know.
func symmetric(secret, text string, encoding Encoding) string {
	mac := hmac.New(sha512.New, []byte(secret))
	mac.Write([]byte(text))
	if encoding == Hex {
		return hex.EncodeToString(mac.Sum(nil))
	}
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// symmetricFits compares a signature in constant time.
func symmetricFits(secret, text string, encoding Encoding, signature string) bool {
	return subtle.ConstantTimeCompare([]byte(symmetric(secret, text, encoding)), []byte(signature)) == 1
}

// asymmetric signs with a private key: SHA256withRSA, base64.
func asymmetric(key *rsa.PrivateKey, text string) (string, error) {
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	return base64.StdEncoding.EncodeToString(signature), err
}

func asymmetricFits(key *rsa.PublicKey, text, signature string) bool {
	raw, err := base64.StdEncoding.DecodeString(signature)
	sum := sha256.Sum256([]byte(text))
	return err == nil && rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], raw) == nil
}

// newKey returns a new private key as PEM (PKCS #8).
func newKey() (string, error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), nil
}

// readKey reads what newKey made.
func readKey(text string) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("the key is not PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the key is not PKCS #8")
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("the key is not RSA")
	}
	return key, nil
}

// publicPEM returns a public key as PEM (PKIX).
func publicPEM(key *rsa.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), nil
}
