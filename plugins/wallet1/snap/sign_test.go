package snap

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"
)

// The vectors of the standard's symmetric signature.
const (
	vectorBody = `{"partnerReferenceNo":"2020102900000000000001","customerNumber":"6281388370001","amount":{"value":"10000.00","currency":"IDR"}}`
	vectorHash = "76f5234c683adae88420d77b77325acbcb401c859ddb0143f25a7d496afbef6f"
	vectorB64  = "J7Mj5mAruP73VRj3hE15DD315A+/noagYpc8Zoe8LBTfCo2rmHiqFPK37NY5Is0YvvhxJ66h094e/bezRRC4+w=="
	vectorHex  = "27b323e6602bb8fef75518f7844d790c3df5e40fbf9e86a062973c6687bc2c14df0a8dab9878aa14f2b7ecd63922cd18bef87127aea1d3de1efdb7b34510b8fb"
)

var vector = signed{
	method: "POST", path: "/v1.0/emoney/account-inquiry", token: "gp9HjjEj813Y9JGoqwOeOPWbnt4CUpvIJbU1mMU4a11MNDZ7Sg5u9a",
	body: []byte(vectorBody), timestamp: "2020-12-21T17:07:11+07:00",
}

func TestSymmetricVectors(t *testing.T) {
	t.Parallel()
	if got := hash(vector.body); got != vectorHash {
		t.Errorf("hash %s", got)
	}
	want := "POST:/v1.0/emoney/account-inquiry:" + vector.token + ":" + vectorHash + ":2020-12-21T17:07:11+07:00"
	if got := vector.symmetric(); got != want {
		t.Errorf("text %s", got)
	}
	for signature, s := range map[string]signer{
		vectorB64: {symmetric: true, secret: testSecret},
		vectorHex: {symmetric: true, secret: testSecret, hex: true},
	} {
		if got, err := s.sign(vector); err != nil || got != signature {
			t.Errorf("got %s, %v; want %s", got, err, signature)
		}
		if !s.genuine(signature, vector) {
			t.Errorf("%s is not taken for genuine", signature)
		}
	}
}

func TestHashOfNothing(t *testing.T) {
	t.Parallel()
	if got := hash(nil); got != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" {
		t.Errorf("got %s", got)
	}
}

func verifies(key *rsa.PublicKey, text, signature string) bool {
	raw, err := base64.StdEncoding.DecodeString(signature)
	sum := sha256.Sum256([]byte(text))
	return err == nil && rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], raw) == nil
}

func TestAsymmetricSignatures(t *testing.T) {
	t.Parallel()
	s := signer{clientID: "client-1", key: keys().ours}
	got, err := s.sign(vector)
	text := "POST:/v1.0/emoney/account-inquiry:" + vectorHash + ":2020-12-21T17:07:11+07:00"
	if err != nil || !verifies(&keys().ours.PublicKey, text, got) {
		t.Errorf("request: %s, %v", got, err)
	}
	got, err = s.signToken(vector.timestamp)
	if err != nil || !verifies(&keys().ours.PublicKey, "client-1|2020-12-21T17:07:11+07:00", got) {
		t.Errorf("token: %s, %v", got, err)
	}
}

func TestGenuine(t *testing.T) {
	t.Parallel()
	theirs := signer{key: keys().theirs}
	made := func(what signed) string {
		signature, err := theirs.sign(what)
		if err != nil {
			t.Fatal(err)
		}
		return signature
	}
	spaced := vector
	spaced.body = []byte(strings.ReplaceAll(vectorBody, ",", " ,\n"))
	checks := signer{provider: &keys().theirs.PublicKey}
	both := signer{provider: &keys().theirs.PublicKey, secret: testSecret}
	other := vector
	other.path += "/"
	for name, c := range map[string]struct {
		checks    signer
		signature string
		what      signed
		want      bool
	}{
		"the provider's key":              {checks, made(vector), vector, true},
		"over the minified body":          {checks, made(vector), spaced, true},
		"over the body as it came":        {checks, made(spaced), spaced, true},
		"over another path":               {checks, made(other), vector, false},
		"our own key":                     {signer{provider: &keys().ours.PublicKey}, made(vector), vector, false},
		"symmetric, with a key":           {both, vectorB64, vector, true},
		"symmetric, without its secret":   {checks, vectorB64, vector, false},
		"symmetric, with another secret":  {signer{secret: "x"}, vectorB64, vector, false},
		"hex, with another secret":        {signer{secret: "x"}, vectorHex, vector, false},
		"no signature":                    {both, "", vector, false},
		"neither base64 nor hex":          {both, "%%%", vector, false},
		"no secret and no key":            {signer{}, vectorB64, vector, false},
		"a body that is none, not signed": {both, vectorB64, signed{method: "POST", body: []byte("{")}, false},
	} {
		if got := c.checks.genuine(c.signature, c.what); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestKeyForms(t *testing.T) {
	t.Parallel()
	key := keys().ours
	pkcs1 := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	for _, text := range []string{pkcs1, privatePEM(t, key)} {
		if got := readPrivateKey(text); got == nil || !got.Equal(key) {
			t.Errorf("not read: %.40s", text)
		}
	}
	pkcs1 = string(pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&key.PublicKey)}))
	for _, text := range []string{pkcs1, publicPEM(t, &key.PublicKey)} {
		if got := readPublicKey(text); got == nil || !got.Equal(&key.PublicKey) {
			t.Errorf("not read: %.40s", text)
		}
	}
	for _, text := range []string{"", "x", publicPEM(t, &key.PublicKey)} {
		if readPrivateKey(text) != nil {
			t.Errorf("%.40s is taken for a private key", text)
		}
	}
	for _, text := range []string{"", "x", privatePEM(t, key)} {
		if readPublicKey(text) != nil {
			t.Errorf("%.40s is taken for a public key", text)
		}
	}
}
