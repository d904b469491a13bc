package conformance

import (
	"maps"
	"testing"
)

func TestAlterationsChangeOneMemberEach(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for pointer, document := range alterations([]byte(`{"a": "xy", "b": [1.50, {"c/d": false}], "e": "", "f": null, "g": "q\"", "h": "0f"}`)) {
		got[pointer] = string(document)
	}
	want := map[string]string{
		"/a":        `{"a": "xa", "b": [1.50, {"c/d": false}], "e": "", "f": null, "g": "q\"", "h": "0f"}`,
		"/b/0":      `{"a": "xy", "b": [1.51, {"c/d": false}], "e": "", "f": null, "g": "q\"", "h": "0f"}`,
		"/b/1/c~1d": `{"a": "xy", "b": [1.50, {"c/d": true}], "e": "", "f": null, "g": "q\"", "h": "0f"}`,
		"/e":        `{"a": "xy", "b": [1.50, {"c/d": false}], "e": "1", "f": null, "g": "q\"", "h": "0f"}`,
		"/g":        `{"a": "xy", "b": [1.50, {"c/d": false}], "e": "", "f": null, "g": "q\"1", "h": "0f"}`,
		"/h":        `{"a": "xy", "b": [1.50, {"c/d": false}], "e": "", "f": null, "g": "q\"", "h": "0a"}`,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSecretsAreFoundInEachForm(t *testing.T) {
	t.Parallel()
	s := &secrets{forms: map[string]string{}}
	s.learn([]byte(`{"secret_key": "top+secret", "provider_public_key": "anybody may", "username": "somebody"}`))
	for text, want := range map[string]string{
		"a top+secret key": "secret_key", "a=top%2Bsecret": "secret_key",
		"Basic dG9wK3NlY3JldDo=": "secret_key", "anybody may, somebody": "",
	} {
		if got := s.in([]byte(text)); got != want {
			t.Errorf("%q has %q, want %q", text, got, want)
		}
	}
}
