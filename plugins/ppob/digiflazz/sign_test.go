package digiflazz

import "testing"

func TestSign(t *testing.T) {
	t.Parallel()
	c := credentials{testUser, testKey, testSecret}
	for what, want := range map[string]string{
		"depo":        "d9878ce50e212902e7917656d100b6f2",
		signPriceList: "bad20720dea628bbedf6aa7055bf4bb5",
		"deposit":     "4938d999ab7bb74af6beb3a5b641786a",
		"some1d":      "76c3891377d2829857bcf37efb746be3",
		"1234554321":  "d2828a964f53d813a79b47dbe04ff9a3",
	} {
		if got := c.sign(what); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
}

func TestSigned(t *testing.T) {
	t.Parallel()
	const (
		body  = `{"data":{"ref_id":"some1d","status":"Sukses","rc":"00"}}`
		right = "sha1=89a25691722fe8a4dd35293dd321cd48e961f0b0"
	)
	c := credentials{testUser, testKey, testSecret}
	for header, want := range map[string]bool{
		right: true,
		"sha1=89A25691722FE8A4DD35293DD321CD48E961F0B0": true,
		"89a25691722fe8a4dd35293dd321cd48e961f0b0":      false,
		"sha1=89a25691722fe8a4dd35293dd321cd48e961f0b1": false,
		"sha1=89a25691722fe8a4dd35293dd321cd48e961f0":   false,
		"sha1=":      false,
		"sha1=zz":    false,
		"":           false,
		right + "\n": false,
	} {
		if got := c.signed(header, []byte(body)); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
	if c.signed(right, []byte(body+" ")) {
		t.Error("a body with one more byte was taken")
	}
	if (credentials{testUser, testKey, testSecret + "x"}).signed(right, []byte(body)) {
		t.Error("another secret was taken")
	}
}
