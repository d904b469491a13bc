package digiflazz

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

// item is a product as the gateway gets it. Its price is what the seller
// takes or, of a bill, the fee.
type item struct {
	SKU       string       `json:"buyer_sku_code"`
	Name      string       `json:"product_name"`
	Category  string       `json:"category"`
	Brand     string       `json:"brand"`
	Type      productType  `json:"type"`
	Price     money.Amount `json:"price"`
	Available bool         `json:"buyer_product_status"`
	Desc      string       `json:"desc"`
}

// listed is an item of either price list. A bill has neither price nor stock.
type listed struct {
	SKU       upstream.Text `json:"buyer_sku_code"`
	Name      upstream.Text `json:"product_name"`
	Category  upstream.Text `json:"category"`
	Brand     upstream.Text `json:"brand"`
	Desc      upstream.Text `json:"desc"`
	Price     figure        `json:"price"`
	Admin     figure        `json:"admin"`
	Buyer     bool          `json:"buyer_product_status"`
	Seller    bool          `json:"seller_product_status"`
	Unlimited *bool         `json:"unlimited_stock"`
	Stock     upstream.Text `json:"stock"`
}

// inStock reports whether something is left, where the upstream counts it.
func (l listed) inStock() bool {
	if l.Unlimited == nil && l.Stock == "" || l.Unlimited != nil && *l.Unlimited {
		return true
	}
	left, err := money.Parse(string(l.Stock))
	return err == nil && left > 0
}

func (l listed) item(t productType) item {
	price := l.Price.Amount
	if t == pasca {
		price = l.Admin.Amount
	}
	return item{
		SKU: string(l.SKU), Name: string(l.Name), Category: string(l.Category), Brand: string(l.Brand),
		Type: t, Price: price, Available: l.Buyer && l.Seller && l.inStock(), Desc: string(l.Desc),
	}
}

// products answers both price lists as one. Half of them would make the other
// half unknown products, so a fault of one is a fault of both.
func (a *adapter) products(ctx context.Context, call sdk.Call) sdk.Result {
	acc, err := a.account(call.Connection)
	if err != nil {
		return sdk.DidNotSend(sdk.BlameAccount, err.Error())
	}
	types := [2]productType{prepaid, pasca}
	var lists [2][]item
	var problems [2]*problem
	var asked sync.WaitGroup
	for i, t := range types {
		asked.Go(func() { lists[i], problems[i] = acc.list(ctx, t, call.SendBy, a.now) })
	}
	asked.Wait()
	for _, p := range problems {
		if p != nil {
			return p.result()
		}
	}
	return sdk.Finished("", append(append([]item{}, lists[0]...), lists[1]...))
}

// throttle is how long the upstream refuses to send a whole list again.
const throttle = 5 * time.Minute

// keptList is a list that the upstream sent.
type keptList struct {
	items []item
	at    time.Time
}

// list asks for one price list. Where the upstream says that it was told
// before, what it told then still holds: or else one half that fails would keep
// the other from being had for as long as the upstream does not repeat it.
func (acc *account) list(ctx context.Context, t productType, sendBy time.Time, now func() time.Time) ([]item, *problem) {
	asked := now()
	items, throttled, p := acc.ask(ctx, t, sendBy)
	acc.mu.Lock()
	defer acc.mu.Unlock()
	if throttled {
		if kept, ok := acc.lists[t]; ok && asked.Sub(kept.at) < throttle {
			return kept.items, nil
		}
	}
	if p == nil {
		acc.lists[t] = keptList{items, asked}
	}
	return items, p
}

func (acc *account) ask(ctx context.Context, t productType, sendBy time.Time) (items []item, throttled bool, p *problem) {
	type request struct {
		Command  string `json:"cmd"`
		Username string `json:"username"`
		Sign     string `json:"sign"`
	}
	sign := acc.client.sign(signPriceList)
	m := message{
		path: "/price-list", sign: sign, sendBy: sendBy,
		body: request{strings.ToLower(string(t)), acc.client.username, sign},
	}
	data, p := acc.client.post(ctx, m)
	if p != nil {
		return nil, false, p
	}
	if bytes.HasPrefix(data, []byte("{")) {
		throttled, p = acc.client.noList(m, data)
		return nil, throttled, p
	}
	items, err := readList(data, t)
	if err != nil {
		return nil, false, acc.client.garbled(m, err.Error())
	}
	return items, false, nil
}

// noList judges an answer that is no list.
func (c *client) noList(m message, data json.RawMessage) (throttled bool, p *problem) {
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		return false, c.garbled(m, err.Error())
	}
	r := c.judge(m, a, "")
	p = &problem{blame: r.blame, detail: m.path + ": " + r.detail}
	switch r.class {
	case limited, again:
		// Too often is no fault of the upstream's, and must not keep orders away.
		return true, p
	case ours:
		return false, p
	default:
		return false, c.garbled(m, r.detail)
	}
}

// readList reads a price list. An item that can't be read can't be sold, and
// keeps no other from it.
func readList(data json.RawMessage, t productType) ([]item, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, err
	}
	items := make([]item, 0, len(raw))
	var fault error
	for _, document := range raw {
		var l listed
		if err := json.Unmarshal(document, &l); err != nil {
			fault = err
			continue
		}
		if l.SKU != "" && (l.Price.given || t == pasca) {
			items = append(items, l.item(t))
		}
	}
	if len(items) == 0 && len(raw) > 0 {
		return nil, fmt.Errorf("none of %d products can be read: %w", len(raw), fault)
	}
	return items, nil
}
