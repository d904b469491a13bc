package sandbox

import (
	"strings"
	"testing"
)

// The published vector of the symmetric signature.
const (
	vectorBody   = `{"partnerReferenceNo":"2020102900000000000001","customerNumber":"6281388370001","amount":{"value":"10000.00","currency":"IDR"}}`
	vectorHash   = "76f5234c683adae88420d77b77325acbcb401c859ddb0143f25a7d496afbef6f"
	vectorToken  = "gp9HjjEj813Y9JGoqwOeOPWbnt4CUpvIJbU1mMU4a11MNDZ7Sg5u9a"
	vectorSecret = "client-secret-123"
	vectorBase64 = "J7Mj5mAruP73VRj3hE15DD315A+/noagYpc8Zoe8LBTfCo2rmHiqFPK37NY5Is0YvvhxJ66h094e/bezRRC4+w=="
	vectorHex    = "27b323e6602bb8fef75518f7844d790c3df5e40fbf9e86a062973c6687bc2c14df0a8dab9878aa14f2b7ecd63922cd18bef87127aea1d3de1efdb7b34510b8fb"
)

func TestSymmetricVector(t *testing.T) {
	t.Parallel()
	loose := strings.NewReplacer(`":`, "\" :\n ", `,`, " ,\t").Replace(vectorBody)
	for _, body := range []string{vectorBody, loose} {
		text := symmetricText("POST", "/v1.0/emoney/account-inquiry", vectorToken, []byte(body), "2020-12-21T17:07:11+07:00")
		if want := "POST:/v1.0/emoney/account-inquiry:" + vectorToken + ":" + vectorHash + ":2020-12-21T17:07:11+07:00"; text != want {
			t.Errorf("signed is %s, want %s", text, want)
		}
		for encoding, want := range map[Encoding]string{Base64: vectorBase64, Hex: vectorHex} {
			if got := symmetric(vectorSecret, text, encoding); got != want || !symmetricFits(vectorSecret, text, encoding, want) {
				t.Errorf("%s is %s, want %s", encoding, got, want)
			}
			if symmetricFits(vectorSecret, text+" ", encoding, want) || symmetricFits(vectorSecret+" ", text, encoding, want) {
				t.Errorf("%s fits something else", encoding)
			}
		}
	}
	if symmetricFits(vectorSecret, vectorBody, Base64, vectorHex) {
		t.Error("hex fits where base64 is wanted")
	}
}

func TestBodyHash(t *testing.T) {
	t.Parallel()
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if got := bodyHash(nil); got != empty {
		t.Errorf("of nothing: %s", got)
	}
	if bodyHash([]byte(`{"a":"x y<"}`)) == bodyHash([]byte(`{"a":"xy<"}`)) {
		t.Error("a space inside of a string is dropped")
	}
	if bodyHash([]byte(`{"a":1,"b":2}`)) == bodyHash([]byte(`{"b":2,"a":1}`)) {
		t.Error("the order of keys is not kept")
	}
	if bodyHash([]byte("no json ")) == bodyHash([]byte("no json")) {
		t.Error("what is no JSON is changed")
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	text, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := readKey(text)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := asymmetric(key, "client|now")
	if err != nil || !asymmetricFits(&key.PublicKey, "client|now", signature) {
		t.Errorf("%s does not fit, %v", signature, err)
	}
	if asymmetricFits(&key.PublicKey, "client|later", signature) || asymmetricFits(&key.PublicKey, "client|now", "%") {
		t.Error("fits something else")
	}
	for _, bad := range []string{"", "text", strings.Replace(text, "MII", "AAA", 1)} {
		if _, err := readKey(bad); err == nil {
			t.Errorf("%.20q is read as a key", bad)
		}
	}
}
