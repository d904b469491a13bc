package digiflazz

import (
	"context"
	"encoding/json"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// signDeposit is what is signed to ask for the deposit.
const signDeposit = "depo"

// verify asks for the deposit, whatever it is. The webhook's secret can't be
// asked for; it shows with the first webhook.
func verify(ctx context.Context, c sdk.Connection) sdk.Result {
	acc, err := openAccount(c)
	if err != nil {
		return sdk.Refuse(sdk.RefuseOther, err.Error())
	}
	defer acc.client.http.CloseIdleConnections()
	type request struct {
		Command  string `json:"cmd"`
		Username string `json:"username"`
		Sign     string `json:"sign"`
	}
	sign := acc.client.sign(signDeposit)
	m := message{path: "/cek-saldo", sign: sign, body: request{"deposit", acc.client.username, sign}}
	data, p := acc.client.post(ctx, m)
	if p != nil {
		return p.result()
	}
	var got struct {
		answer
		Deposit json.RawMessage `json:"deposit"`
	}
	if err := json.Unmarshal(data, &got); err != nil {
		return acc.client.garbled(m, err.Error()).result()
	}
	if len(got.Deposit) > 0 && got.RC == "" {
		return sdk.Usable("") // the deposit may be none, and even below
	}
	r := acc.client.judge(m, got.answer, "")
	if r.verdict == turnedAway {
		return sdk.DidNotSend(r.blame, r.detail)
	}
	return sdk.DontKnow(r.blame, r.detail)
}
