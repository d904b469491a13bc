package callback

import (
	"cmp"
	"crypto/hmac"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// tolerance is how far the time of a try may be from the verifier's clock, as
// the Standard Webhooks specification proposes.
const tolerance = 5 * time.Minute

// ErrUnverified is what Verify wraps when a callback does not prove where it
// comes from. Its text says which proof is missing or wrong.
var ErrUnverified = errors.New("the callback is not verified")

// Verify checks what Sign has made, as a careful receiver does: both signatures
// must be there and be made with one of the secrets (during a rotation not
// necessarily the same one), and the try must be no older or newer than five
// minutes. Errors are ErrUnverified, and ErrSecret for a secret that nobody
// could have signed with.
func Verify(service string, header http.Header, body []byte, secrets []Secret, now time.Time) error {
	own, standard := false, false
	for _, secret := range secrets { // all of them, so that the time taken does not tell which one it was
		key, err := secret.key()
		if err != nil {
			return err
		}
		if hmac.Equal([]byte(header.Get(ownHeader(service))), []byte(ownSignature(secret, body))) {
			own = true
		}
		if key.VerifyIgnoringTimestamp(body, header) == nil {
			standard = true
		}
	}
	for _, name := range []string{
		ownHeader(service), standardwebhooks.HeaderWebhookID,
		standardwebhooks.HeaderWebhookTimestamp, standardwebhooks.HeaderWebhookSignature,
	} {
		if header.Get(name) == "" {
			return fmt.Errorf("%w: it has no %s", ErrUnverified, name)
		}
	}
	switch {
	case !own:
		return fmt.Errorf("%w: %s is by none of the secrets", ErrUnverified, ownHeader(service))
	case !standard:
		return fmt.Errorf("%w: %s is by none of the secrets", ErrUnverified, standardwebhooks.HeaderWebhookSignature)
	}
	return verifyTime(header.Get(standardwebhooks.HeaderWebhookTimestamp), now)
}

// verifyTime is here because the library takes the time from the system alone.
func verifyTime(text string, now time.Time) error {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if off := now.Sub(time.Unix(seconds, 0)).Abs(); err != nil || off > tolerance {
		return fmt.Errorf("%w: %s is more than %s off", ErrUnverified, standardwebhooks.HeaderWebhookTimestamp, tolerance)
	}
	return nil
}

func ownHeader(service string) string {
	return "X-" + cmp.Or(service, defaultService) + "-Signature"
}
