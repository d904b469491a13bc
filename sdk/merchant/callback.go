package merchant

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ErrCallback is the error of a callback that is not Gerbang's, or too old: answer 400 and
// do nothing.
var ErrCallback = errors.New("gerbang: the callback is not verified")

// Callback is a verified callback.
type Callback struct {
	ID    string          // the same on every attempt: one that was seen is done
	Event string          // payments.status_update, ...
	Data  json.RawMessage // for the type of the event: PaymentEventData, ...
}

// tolerance is how old or how new a callback may be.
const tolerance = 5 * time.Minute

// VerifyCallback checks the Standard Webhooks signature of the received bytes, by any of the
// secrets: two while a secret is rotated.
func VerifyCallback(header http.Header, body []byte, secrets ...string) (Callback, error) {
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if id == "" || err != nil || time.Since(time.Unix(seconds, 0)).Abs() > tolerance {
		return Callback{}, ErrCallback
	}
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(key) == 0 {
			continue
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		want := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		for _, given := range strings.Fields(header.Get("webhook-signature")) {
			if !hmac.Equal([]byte(given), want) {
				continue
			}
			var told struct {
				Event string
				Data  json.RawMessage
			}
			if json.Unmarshal(body, &told) != nil {
				return Callback{}, ErrCallback
			}
			return Callback{ID: id, Event: told.Event, Data: told.Data}, nil
		}
	}
	return Callback{}, ErrCallback
}
