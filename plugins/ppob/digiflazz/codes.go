package digiflazz

// class is what a response code is about.
type class int

const (
	unlisted    class = iota // a code that this adapter does not know
	success                  // it is done
	underway                 // its end comes later
	ours                     // our account, or our request: nothing was bought, and no merchant can help it
	limited                  // this request, not the transaction: our account has asked too often
	again                    // this request, not the transaction: a name that is taken
	product                  // the product, or its seller
	destination              // the customer number
	amount                   // the amount of a product of open amount
	other                    // whatever else a merchant must know
)

// reason is a response code in words that a merchant may read.
type reason struct {
	class class
	text  string
}

const (
	codeMalformed = "40"
	codeTaken     = "49"
	codeNotFound  = "50"
)

// reasons are the upstream's response codes.
var reasons = map[string]reason{
	"00": {success, "The order succeeded."},
	"03": {underway, "The order is being processed."},
	"99": {underway, "The order is being processed."},

	codeMalformed: {ours, "the upstream can't read our request"},
	"41":          {ours, "our signature is wrong"},
	"42":          {ours, "our API user is unknown or not ready"},
	"44":          {ours, "our deposit is too low"},
	"45":          {ours, "our IP address is not allowed"},
	"61":          {ours, "our account never had a deposit"},
	"64":          {ours, "our deposit ticket failed"},
	"80":          {ours, "the seller has blocked our account"},
	"81":          {ours, "our account has blocked the seller"},
	"82":          {ours, "our account is not verified"},
	"88":          {ours, "our account may not do this"},

	codeTaken: {again, "the ref_id is not unique"},
	"83":      {limited, "the price list was asked for too often"},
	"85":      {limited, "asked too often, one minute must pass"},
	"86":      {limited, "too many checks of electricity meters"},

	"43": {product, "The product does not exist or is switched off."},
	"53": {product, "The product is not available now."},
	"55": {product, "The product has a disturbance now."},
	"58": {product, "The product is in its daily pause."},
	"62": {product, "The product's supplier has a problem now."},
	"63": {product, "The product can't be bought more than once for the same number now."},
	"66": {product, "The product's supplier is in its daily pause."},
	"67": {product, "The product's supplier may not sell it."},
	"68": {product, "The product is out of stock."},
	"69": {product, "The product costs more than it is listed for; ask for the product list again."},
	"71": {product, "The product is unstable now."},

	codeNotFound: {destination, "The customer number is not known to the provider."},
	"51":         {destination, "The number is blocked."},
	"52":         {destination, "The number does not belong to the product's operator."},
	"54":         {destination, "The customer number is wrong."},
	"57":         {destination, "The customer number has a wrong number of digits."},
	"59":         {destination, "The number is outside the area of the product."},
	"60":         {destination, "There is no bill for this customer number now."},

	"84": {amount, "The amount is none that the provider takes."},
	"87": {amount, "The amount must be a multiple of 1000."},

	"01": {other, "The provider timed out, and the order failed."},
	"02": {other, "The order failed at the provider."},
	"47": {other, "The same purchase was already made elsewhere."},
	"56": {other, "The order failed at the provider."},
	"65": {other, "The order failed at the provider."},
	"70": {other, "The biller timed out, and the order failed."},
	"72": {other, "The number must first leave its present package."},
	"73": {other, "The electricity meter is above its limit."},
	"74": {other, "The order was refunded by the provider."},
}

// aboutRequest tells of a code that it may be about the request that it answers
// and not about the transaction of that ref_id. Such a code ends no order that
// was sent before: 40 to 49, those of asking too often, and those of our
// account, which hit every request alike. What is no code of two digits says
// nothing either.
func aboutRequest(rc string) bool {
	if class := reasons[rc].class; class == ours || class == limited || class == again {
		return true
	}
	return len(rc) != 2 || rc[0] == '4'
}
