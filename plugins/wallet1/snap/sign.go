package snap

import (
	"bytes"
	"crypto"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
)

// signer signs what an account sends, and checks what it is sent.
type signer struct {
	clientID  string
	symmetric bool
	secret    string
	hex       bool
	key       *rsa.PrivateKey
	provider  *rsa.PublicKey // nil where its notifications are signed with the secret
}

// signer reads the keys of a connection. The error holds none of them.
func (s settings) signer() (signer, error) {
	made := signer{
		clientID: s.ClientID, symmetric: s.Signature != "asymmetric", secret: s.ClientSecret, hex: s.SignatureEncoding == "hex",
	}
	if made.symmetric && made.secret == "" {
		return signer{}, errors.New("client_secret must be given for symmetric signatures")
	}
	if !made.symmetric && s.ProviderPublicKey == "" {
		return signer{}, errors.New("provider_public_key must be given for asymmetric signatures")
	}
	if made.key = readPrivateKey(s.PrivateKey); made.key == nil {
		return signer{}, errors.New("private_key: not an RSA private key of at least 1024 bits as PEM")
	}
	if s.ProviderPublicKey != "" {
		if made.provider = readPublicKey(s.ProviderPublicKey); made.provider == nil {
			return signer{}, errors.New("provider_public_key: not an RSA public key as PEM")
		}
	}
	return made, nil
}

func readPrivateKey(text string) *rsa.PrivateKey {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return nil
		}
		key, _ = parsed.(*rsa.PrivateKey)
	}
	if key == nil || key.N.BitLen() < 1024 { // shorter ones are refused when they sign
		return nil
	}
	return key
}

func readPublicKey(text string) *rsa.PublicKey {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil
	}
	if key, err := x509.ParsePKCS1PublicKey(block.Bytes); err == nil {
		return key
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil
	}
	key, _ := parsed.(*rsa.PublicKey)
	return key
}

// signed is what a signature is made over.
type signed struct {
	method, path, token string
	body                []byte // as it is sent
	timestamp           string
}

// hash is the lower-case hex SHA-256 of a body.
func hash(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func (s signed) symmetric() string {
	return strings.Join([]string{s.method, s.path, s.token, hash(s.body), s.timestamp}, ":")
}

func (s signed) asymmetric() string {
	return strings.Join([]string{s.method, s.path, hash(s.body), s.timestamp}, ":")
}

// sign signs a request.
func (s signer) sign(what signed) (string, error) {
	if !s.symmetric {
		return s.rsa(what.asymmetric())
	}
	mac := s.mac(what.symmetric())
	if s.hex {
		return hex.EncodeToString(mac), nil
	}
	return base64.StdEncoding.EncodeToString(mac), nil
}

// signToken signs the request for a token.
func (s signer) signToken(timestamp string) (string, error) {
	return s.rsa(s.clientID + "|" + timestamp)
}

func (s signer) rsa(text string) (string, error) {
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(nil, s.key, crypto.SHA256, sum[:])
	return base64.StdEncoding.EncodeToString(signature), err
}

func (s signer) mac(text string) []byte {
	mac := hmac.New(sha512.New, []byte(s.secret))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// genuine reports whether the provider signed something: with its own key, or
// with the secret that it shares with this account alone. A body counts as it
// came and as the standard has it, without white space.
func (s signer) genuine(signature string, what signed) bool {
	if s.signs(signature, what) {
		return true
	}
	var minified bytes.Buffer
	if json.Compact(&minified, what.body) != nil {
		return false
	}
	what.body = minified.Bytes()
	return s.signs(signature, what)
}

func (s signer) signs(signature string, what signed) bool {
	if raw, err := base64.StdEncoding.DecodeString(signature); err == nil {
		if s.provider != nil {
			sum := sha256.Sum256([]byte(what.asymmetric()))
			if rsa.VerifyPKCS1v15(s.provider, crypto.SHA256, sum[:], raw) == nil {
				return true
			}
		}
		if s.secret != "" && hmac.Equal(raw, s.mac(what.symmetric())) {
			return true
		}
	}
	raw, err := hex.DecodeString(signature)
	return err == nil && s.secret != "" && hmac.Equal(raw, s.mac(what.symmetric()))
}
