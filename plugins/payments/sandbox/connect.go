package sandbox

import kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"

// Connect opens an account, which is no more than an API key that nobody else
// has.
func (s *Simulator) Connect(mode, key, token, base string) kit.Connection {
	secret := testKeyPrefix + key
	if mode == "live" {
		secret = liveKeyPrefix + key
	}
	return kit.Connection{
		Account: secret, CallbackToken: token,
		Credentials: map[string]string{"secret_key": secret, "callback_token": token, "base_url": base},
	}
}

// Revoke implements the kit's Revoker.
func (s *Simulator) Revoke(account string) error { return s.env.Accounts.Revoke(account) }
