package snap

// class is what the lack of a success proves, and whose matter it is.
type class int

const (
	unlisted    class = iota // no code, or none that we know: it may have been done
	success                  // it is done
	underway                 // its end comes later
	unsent                   // nothing reached the upstream
	expired                  // the token: nothing was looked at
	forbidden                // this account may not use the service: nothing was done
	ours                     // our account or our request: nothing was done, and no merchant can help it
	throttled                // asked too often: nothing was looked at
	conflict                 // X-EXTERNAL-ID was used before today
	errored                  // the upstream's own error ended it: it may have been done
	earlier                  // about an earlier attempt of the same name, or one that may still go on
	missing                  // there is no such transaction
	malformed                // a field of the request
	destination              // who is to receive it
	bank                     // the bank that is to receive it
	amount                   // the amount
	other                    // whatever else a merchant must know
)

// reason is a response code in words: for merchants where the class is theirs,
// else for operators.
type reason struct {
	class class
	text  string
}

const tooOften = "asked too often"

// reasons are the standard's response codes without the service: HTTP status
// and case. What is not here proves nothing.
var reasons = map[string]reason{
	"20000": {success, "successful"},
	"20200": {underway, "in progress"},

	"40000": {malformed, "The provider can't read the request."},
	"40001": {malformed, "The provider does not take the form of a field."},
	"40002": {malformed, "The provider misses a field, or takes no such value."},

	"40100": {ours, "our signature or our account is refused"},
	"40101": {expired, "the token is no longer valid"},
	"40102": {ours, "the customer token is not valid"},
	"40103": {expired, "the token is not known"},
	"40104": {ours, "the customer token is not known"},

	"40300": {other, "The transaction expired at the provider."},
	"40301": {forbidden, "our account may not use this"},
	"40302": {amount, "The amount is above the provider's limit."},
	"40303": {other, "The provider suspects fraud and refused."},
	"40304": {other, "The provider's limit on the number of transfers is reached."},
	"40305": {destination, "The receiver can't be paid: frozen, or unknown to the provider."},
	"40306": {other, "The provider does not offer this at this time."},
	"40307": {destination, "The receiver is blocked."},
	"40308": {destination, "The receiver has expired."},
	"40309": {destination, "The receiver is dormant."},
	"40310": {ours, "our account needs a token limit"},
	"40311": {ours, "our account's one-time password is blocked"},
	"40312": {ours, "our account's one-time password has expired"},
	"40313": {earlier, "a one-time password was sent, which nobody reads here"},
	"40314": {other, "The balance of the connected wallet is too low."},
	"40315": {other, "The provider does not permit this transaction."},
	"40316": {earlier, "the transaction is suspended"},
	"40317": {ours, "our account's token limit is exceeded"},
	"40318": {destination, "The receiver is inactive."},
	"40319": {ours, "our account is blacklisted"},
	"40320": {other, "The limit of the connected wallet is exceeded."},
	"40321": {ours, "our account may set no limit"},
	"40322": {ours, "our account's token limit is invalid"},
	"40323": {other, "The transfer exceeds an account's limit."},

	"40400": {earlier, "the transaction stands otherwise"},
	"40401": {missing, "there is no such transaction"},
	"40402": {other, "The provider has no way to the receiver."},
	"40403": {bank, "The provider does not reach this bank."},
	"40404": {other, "The transaction was cancelled at the provider."},
	"40405": {ours, "our account is not registered for cards"},
	"40406": {ours, "our account must ask for a one-time password"},
	"40407": {ours, "the journey is not known"},
	"40408": {ours, "our account is no valid merchant"},
	"40409": {destination, "The receiver has no issuer."},
	"40410": {ours, "the upstream expects another call first"},
	"40411": {destination, "The provider does not know the receiver."},
	"40412": {destination, "The provider does not know this number."},
	"40413": {amount, "The provider does not take this amount."},
	"40414": {earlier, "it is paid already"},
	"40415": {ours, "our account's one-time password is wrong"},
	"40416": {ours, "our account is not known"},
	"40417": {ours, "our terminal is not known"},
	"40418": {earlier, "the same reference was used with other parameters"},
	"40419": {destination, "The number has expired at the provider."},

	"40500": {forbidden, "the function is not supported"},
	"40501": {forbidden, "the operation is not allowed"},

	"40900": {conflict, "the X-EXTERNAL-ID was used before"},
	"40901": {earlier, "the reference was used before"},

	"42900": {throttled, tooOften},

	"50000": {errored, "the upstream failed"},
	"50001": {errored, "the upstream failed inside"},
	"50002": {errored, "somebody behind the upstream failed"},
}

// reasonOf is what a code means. Of 401 and 429 the HTTP status alone says
// enough, whatever the case is.
func reasonOf(httpStatus, caseCode string) reason {
	if known, ok := reasons[httpStatus+caseCode]; ok {
		return known
	}
	switch httpStatus {
	case "401":
		return reason{ours, "we are refused"}
	case "429":
		return reason{throttled, tooOften}
	}
	return reason{unlisted, "no code that proves anything"}
}
