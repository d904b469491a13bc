package sandbox

import (
	"cmp"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// The two price lists.
const (
	prepaidList = "prepaid"
	pascaList   = "pasca"
)

// codeEvery is how often one product may be asked for by its code.
const codeEvery = time.Second

// seller is who sells everything.
const seller = "Seller Contoh"

// listing is what is throttled on its own: a list, or a product of it.
type listing struct {
	account    kit.AccountID
	list, code string
}

// prepaidItem is an item of the prepaid list.
type prepaidItem struct {
	Name      string `json:"product_name"`
	Category  string `json:"category"`
	Brand     string `json:"brand"`
	Kind      string `json:"type"`
	Seller    string `json:"seller_name"`
	Price     any    `json:"price"`
	SKU       string `json:"buyer_sku_code"`
	BuyerOn   bool   `json:"buyer_product_status"`
	SellerOn  bool   `json:"seller_product_status"`
	Unlimited bool   `json:"unlimited_stock"`
	Stock     int64  `json:"stock"`
	Multi     bool   `json:"multi"`
	CutFrom   string `json:"start_cut_off"`
	CutTo     string `json:"end_cut_off"`
	About     string `json:"desc"`
}

// pascaItem is an item of the postpaid list, which has neither price nor type.
type pascaItem struct {
	Name       string       `json:"product_name"`
	Category   string       `json:"category"`
	Brand      string       `json:"brand"`
	Seller     string       `json:"seller_name"`
	Admin      money.Amount `json:"admin"`
	Commission money.Amount `json:"commission"`
	SKU        string       `json:"buyer_sku_code"`
	BuyerOn    bool         `json:"buyer_product_status"`
	SellerOn   bool         `json:"seller_product_status"`
	About      string       `json:"desc"`
}

func (s *Simulator) priceList(c call) (any, error) {
	s.mu.Lock()
	items, err := s.listItems(c)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return items, s.env.Journal.Sync()
}

// listItems gives the items of a list: of the prepaid one to clients from before there
// were two, which name none.
func (s *Simulator) listItems(c call) ([]any, error) {
	c.Command = cmp.Or(c.Command, prepaidList)
	every := s.options.ListEvery
	if c.Code != "" && every > 0 {
		every = codeEvery
	}
	key, now := listing{c.account, c.Command, c.Code}, s.now()
	if last, asked := s.listed[key]; asked && now.Sub(last) < every {
		return nil, refuse(rcListLimit)
	}
	s.listed[key] = now
	items := []any{}
	for _, p := range s.products {
		if !p.matches(c.request) {
			continue
		}
		if p.pasca() {
			items = append(items, pascaItem{
				p.Name, p.Category, p.Brand, seller, p.Admin, p.Commission, p.SKU, !p.BuyerOff, !p.SellerOff, "-",
			})
			continue
		}
		item := prepaidItem{
			Name: p.Name, Category: p.Category, Brand: p.Brand, Kind: p.Kind, Seller: seller, Price: s.price(p.Price),
			SKU: p.SKU, BuyerOn: !p.BuyerOff, SellerOn: !p.SellerOff, Unlimited: p.Stock == nil, Multi: true,
			CutFrom: "00:00", CutTo: "00:00", About: "-",
		}
		if p.Stock != nil {
			item.Stock = *p.Stock
		}
		items = append(items, item)
	}
	return items, nil
}

// price writes an amount as the options say.
func (s *Simulator) price(a money.Amount) any {
	if s.options.PriceAsText {
		return a.String()
	}
	return a
}
