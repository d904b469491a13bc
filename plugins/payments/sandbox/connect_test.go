package sandbox_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/seed-f006e74d/gerbang/plugins/payments/sandbox"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// TestConnectOpensTheSameAccountAgain is what lets a development gateway start
// again without losing what its merchants have at the simulator.
func TestConnectOpensTheSameAccountAgain(t *testing.T) {
	t.Parallel()
	env, err := kit.Open(kit.Config{Provider: "payments", StateDir: t.TempDir(), Token: "control"})
	if err != nil {
		t.Fatal(err)
	}
	up, err := sandbox.New(env, sandbox.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(env.Handler(up))
	t.Cleanup(func() { server.Close(); _ = env.Close() })

	connect := func(merchant, mode string) string {
		t.Helper()
		body, _ := json.Marshal(map[string]string{"merchant": merchant, "mode": mode})
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/_sandbox/connect", bytes.NewReader(body))
		request.Header.Set("Authorization", "Bearer control")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var connection struct {
			Credentials struct {
				SecretKey string `json:"secret_key"`
				BaseURL   string `json:"base_url"`
			} `json:"credentials"`
		}
		if err := json.NewDecoder(response.Body).Decode(&connection); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("connect: status %d, %v", response.StatusCode, err)
		}
		if connection.Credentials.BaseURL != server.URL {
			t.Errorf("base_url is %q, want %q", connection.Credentials.BaseURL, server.URL)
		}
		return connection.Credentials.SecretKey
	}
	first := connect("mer_1", "live")
	if again := connect("mer_1", "live"); again != first {
		t.Errorf("the account changed: %q, then %q", first, again)
	}
	if connect("mer_1", "test") == first || connect("mer_2", "live") == first {
		t.Error("two accounts have one key")
	}
}
