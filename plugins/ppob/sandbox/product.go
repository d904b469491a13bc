package sandbox

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// product is what can be bought, as the journal keeps one that was changed.
type product struct {
	SKU      string `json:"sku"`
	Name     string `json:"name"`
	Category string `json:"category"`
	Brand    string `json:"brand"`
	Kind     string `json:"kind,omitempty"` // empty for a bill
	// Price is of a prepaid product.
	Price money.Amount `json:"price,omitempty"`
	// Bill, Admin and Commission are of a postpaid one: what one bill comes to
	// before the admin fee, and what of it all stays with the buyer.
	Bill       money.Amount `json:"bill,omitempty"`
	Admin      money.Amount `json:"admin,omitempty"`
	Commission money.Amount `json:"commission,omitempty"`
	// Stock is what is left; nil is without end.
	Stock     *int64 `json:"stock,omitempty"`
	BuyerOff  bool   `json:"buyer_off,omitempty"`
	SellerOff bool   `json:"seller_off,omitempty"`
}

// pasca reports whether a product is a bill.
func (p *product) pasca() bool { return p.Kind == "" }

// categoryPasca is the category of every bill.
const categoryPasca = "Pascabayar"

// setProduct replaces a product, or adds one.
func (s *Simulator) setProduct(p product) {
	if old, ok := s.bySKU[p.SKU]; ok {
		*old = p
		return
	}
	s.products = append(s.products, &p)
	s.bySKU[p.SKU] = &p
}

// find returns a product that can be asked for at all.
func (s *Simulator) find(sku string, pasca bool) (*product, error) {
	p, ok := s.bySKU[sku]
	if !ok || p.BuyerOff || p.pasca() != pasca {
		return nil, refuse(rcSKU)
	}
	return p, nil
}

// catalogue is the list of products that every account can buy.
func catalogue() []product {
	none := int64(0)
	list := []product{
		pulsa("xld10", "XL 10.000", "XL", 10_850),
		pulsa("xld25", "XL 25.000", "XL", 25_100),
		pulsa("X100", "Xl 100.000", "XL", 98_000),
		pulsa("S5", "Telkomsel 5.000", "TELKOMSEL", 5_100),
		pulsa("tsel10", "Telkomsel 10.000", "TELKOMSEL", 10_250),
		pulsa("isat10", "Indosat 10.000", "INDOSAT", 10_400),
		pulsa("isat25", "Indosat 25.000", "INDOSAT", 25_050).with(func(p *product) { p.BuyerOff = true }),
		pulsa("axis5", "Axis 5.000", "AXIS", 5_600),
		pulsa("axis10", "Axis 10.000", "AXIS", 10_500).with(func(p *product) { p.SellerOff = true }),
		pulsa("tri5", "Tri 5.000", "TRI", 5_450),
		pulsa("tri10", "Tri 10.000", "TRI", 10_200).with(func(p *product) { p.Stock = &none }),
		pulsa("smart10", "Smartfren 10.000", "SMARTFREN", 10_050),
		pulsa("byu10", "by.U 10.000", "by.U", 10_300),
		{SKU: "xldata1", Name: "XL Data 1 GB", Category: "Data", Brand: "XL", Kind: "Umum", Price: 15_200},
		{SKU: "tseldata1", Name: "Telkomsel Data 1 GB", Category: "Data", Brand: "TELKOMSEL", Kind: "Umum", Price: 16_750},
		token("pln20", "PLN 20.000", 20_150),
		token("pln50", "PLN 50.000", 50_150),
		token("pln100", "PLN 100.000", 100_150),
		wallet("dana20", "DANA 20.000", "DANA", 20_100),
		wallet("ovo100", "OVO 100.000", "OVO", 100_600),
		wallet("gopay10", "GO PAY 10.000", "GO PAY", 10_350),
		wallet("shopee50", "SHOPEE PAY 50.000", "SHOPEE PAY", 50_400),
		{SKU: "game50", Name: "Permainan Contoh 50 Koin", Category: categoryGames, Brand: "PERMAINAN CONTOH", Kind: "Umum", Price: 14_500},
	}
	return append(list, bills()...)
}

func pulsa(sku, name, brand string, price money.Amount) product {
	return product{SKU: sku, Name: name, Category: "Pulsa", Brand: brand, Kind: "Umum", Price: price}
}

func token(sku, name string, price money.Amount) product {
	return product{SKU: sku, Name: name, Category: categoryPLN, Brand: "PLN", Kind: "Umum", Price: price}
}

func wallet(sku, name, brand string, price money.Amount) product {
	return product{SKU: sku, Name: name, Category: categoryWallet, Brand: brand, Kind: "Customer", Price: price}
}

func (p product) with(change func(*product)) product {
	change(&p)
	return p
}

// bills are the postpaid products of the public test numbers.
func bills() []product {
	bill := func(sku, name, brand string, amount, admin, commission money.Amount) product {
		return product{
			SKU: sku, Name: name, Category: categoryPasca, Brand: brand, Bill: amount, Admin: admin, Commission: commission,
		}
	}
	return []product{
		// One bill is 11,000 for the customer and 10,000 for the buyer, as in
		// the upstream's sample.
		bill(skuPLN, "Pln Postpaid", "PLN PASCABAYAR", 8_500, 2_500, 1_000),
		bill("pdam", "PDAM", "PDAM", 63_000, 2_000, 550),
		bill("internet", "Internet", "INTERNET PASCABAYAR", 297_000, 2_750, 1_200),
		bill("bpjs", "BPJS Kesehatan", "BPJS KESEHATAN", 70_000, 2_500, 900),
		bill("multifinance", "Multifinance", "MULTIFINANCE", 1_250_000, 4_000, 1_500),
		bill(skuPBB, "PBB Cimahi", "PBB", 185_000, 3_000, 1_000),
		bill("pdl", "Pajak Daerah Lainnya", "PDL", 90_000, 2_500, 800),
		bill("pgas", "Gas Negara", "GAS NEGARA", 54_000, 2_500, 700),
		bill("tv", "TV Pascabayar", "TV PASCABAYAR", 150_000, 2_500, 900),
		bill("bpjstk", "BPJS Ketenagakerjaan", "BPJS KETENAGAKERJAAN", 16_800, 2_500, 800),
		bill("bpjstkpu", "BPJS Ketenagakerjaan PU", "BPJS KETENAGAKERJAAN", 216_000, 2_500, 800),
		bill("plnnontaglis", "PLN Nontaglis", "PLN NONTAGLIS", 775_000, 5_000, 1_500),
		bill(skuEMoney, "E-Money", "E-MONEY", 0, 1_000, 200),
		bill("samsat", "Samsat", "SAMSAT", 325_000, 5_000, 1_500),
		bill("hp", "HP Pascabayar", "HP PASCABAYAR", 120_000, 2_000, 700),
	}
}

// productOrder changes a product; what is absent stays.
type productOrder struct {
	SKU      string        `json:"sku"`
	Price    *money.Amount `json:"price"`
	Bill     *money.Amount `json:"bill"`
	Admin    *money.Amount `json:"admin"`
	Stock    *int64        `json:"stock"`
	BuyerOn  *bool         `json:"buyer_product_status"`
	SellerOn *bool         `json:"seller_product_status"`
}

func (s *Simulator) changeProduct(o productOrder) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.bySKU[o.SKU]
	if !ok {
		return nil, kit.ErrUnknown
	}
	if found.pasca() && o.Price != nil || !found.pasca() && (o.Bill != nil || o.Admin != nil) {
		return nil, errors.New("price is for prepaid products, bill and admin are for postpaid ones")
	}
	if o.Price != nil && *o.Price < 1 || o.Stock != nil && *o.Stock < 0 {
		return nil, errors.New("price must be at least 1, and stock not negative")
	}
	p := *found
	assign(&p.Price, o.Price)
	assign(&p.Bill, o.Bill)
	assign(&p.Admin, o.Admin)
	if o.Stock != nil {
		p.Stock = o.Stock
	}
	if o.BuyerOn != nil {
		p.BuyerOff = !*o.BuyerOn
	}
	if o.SellerOn != nil {
		p.SellerOff = !*o.SellerOn
	}
	if p.pasca() && p.Bill+p.Admin < p.Commission {
		return nil, fmt.Errorf("bill and admin must come to the commission of %s", p.Commission)
	}
	return o, s.env.Journal.Append(s.productTopic.Entry(p)).Wait()
}

// catalogueOrder adds products, of the brands that there are.
type catalogueOrder struct {
	More int `json:"more"`
}

func (s *Simulator) addProducts(o catalogueOrder) (any, error) {
	if o.More < 1 || o.More > 100_000 {
		return nil, errors.New("more must be 1 to 100000")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	brands, entries := []string{"AXIS", "INDOSAT", "TELKOMSEL", "TRI", "XL"}, make([]kit.Entry, o.More)
	for i := range entries {
		brand, number := brands[i%len(brands)], len(s.products)+i
		price := money.Amount(5_000 + 50*number)
		entries[i] = s.productTopic.Entry(pulsa(fmt.Sprintf("more%d", number), fmt.Sprintf("%s paket %d", brand, number), brand, price))
	}
	return o, s.env.Journal.Append(entries...).Wait()
}

func assign[T any](into, value *T) {
	if value != nil {
		*into = *value
	}
}

// matches reports whether a product is what a price list was asked for.
func (p *product) matches(q request) bool {
	return p.pasca() == (q.Command == pascaList) &&
		(q.Code == "" || q.Code == p.SKU) &&
		(q.Category == "" || strings.EqualFold(q.Category, p.Category)) &&
		(q.Brand == "" || strings.EqualFold(q.Brand, p.Brand)) &&
		(q.Type == "" || strings.EqualFold(q.Type, p.Kind))
}
