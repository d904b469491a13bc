package edge

import (
	"encoding/json"
	"testing"
)

func TestDecodeKeepsCredentialsApart(t *testing.T) {
	t.Parallel()
	b, err := decode([]byte(` {"secret_key":"k","merchant_id":"m","amount":1e4,"none":null,"empty":"","yes":true,` +
		`"list":[1,"a",null,false],"metadata":{"a":"b","n":null,"e":""}} `))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(b.document)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"amount":1e4,"list":[1,"a",null,false],"metadata":{"a":"b","e":"","n":null},"yes":true}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if b.key != (credential{text: "k", given: true}) || b.merchant != (credential{text: "m", given: true}) {
		t.Errorf("credentials %+v %+v", b.key, b.merchant)
	}
}

func TestDecodeJudgesNoCredential(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]credential{
		`{}`:                             {},
		`{"secret_key":null}`:            {},
		`{"secret_key":""}`:              {},
		`{"secret_key":7}`:               {given: true, malformed: true},
		`{"secret_key":["k"]}`:           {given: true, malformed: true},
		`{"secret_key":1e999999999}`:     {given: true, malformed: true},
		`{"secret_key":"a\u0000b"}`:      {given: true, text: "a\x00b"},
		`{"secret_key":"\u006b","a":""}`: {given: true, text: "k"},
	} {
		b, err := decode([]byte(text))
		if err != nil || b.key != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, b.key, err, want)
		}
	}
}
