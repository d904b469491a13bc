package snap

import "maps"

// service is one call of the standard: its number in response codes, its name
// in the connection's paths, and what its destination is called in our requests.
type service struct {
	code        string
	name        string
	destination string
	question    bool // it moves nothing, so that its refusals leave the caller free
}

// The services in use.
var (
	tokenB2B       = service{code: "73", name: "token", question: true}
	balanceInquiry = service{code: "11", name: "balance", question: true}
	historyList    = service{code: "12", name: "history", question: true}
	walletInquiry  = service{code: "37", name: "wallet_inquiry", destination: "phone", question: true}
	topUp          = service{code: "38", name: "wallet_transfer", destination: "phone"}
	topUpStatus    = service{code: "39", name: "wallet_status", question: true}
	bankInquiry    = service{code: "42", name: "bank_inquiry", destination: "account_no", question: true}
	transferBank   = service{code: "43", name: "bank_transfer", destination: "account_no"}
	bankStatus     = service{code: "00", name: "bank_status", question: true}
	transferStatus = service{code: "36", name: "bank_status", question: true}
)

// dialect is how a provider deviates from the standard.
type dialect string

const dialectDANA dialect = "dana"

// standardPaths are by the service's name. The standard has no path of its own
// for the status of a bank transfer out of a wallet; this is the usual one.
var standardPaths = map[string]string{
	tokenB2B.name:       "/v1.0/access-token/b2b",
	balanceInquiry.name: "/v1.0/balance-inquiry",
	historyList.name:    "/v1.0/transaction-history-list",
	walletInquiry.name:  "/v1.0/emoney/account-inquiry",
	topUp.name:          "/v1.0/emoney/topup",
	topUpStatus.name:    "/v1.0/emoney/topup-status",
	bankInquiry.name:    "/v1.0/emoney/bank-account-inquiry",
	transferBank.name:   "/v1.0/emoney/transfer-bank",
	bankStatus.name:     "/v1.0/emoney/transfer-bank-status",
}

const transferStatusPath = "/v1.0/transfer/status"

var danaPaths = map[string]string{
	balanceInquiry.name: "/v1.0/balance-inquiry.htm",
	historyList.name:    "/v1.0/transaction-history-list.htm",
	walletInquiry.name:  "/v1.0/emoney/account-inquiry.htm",
	topUp.name:          "/v1.0/emoney/topup.htm",
	topUpStatus.name:    "/v1.0/emoney/topup-status.htm",
	bankInquiry.name:    "/v1.0/emoney/bank-account-inquiry.htm",
	transferBank.name:   "/v1.0/emoney/transfer-bank.htm",
	bankStatus.name:     "/v1.0/emoney/transfer-bank-status.htm",
}

// danaTestPaths are those that only DANA's sandbox has.
var danaTestPaths = map[string]string{
	walletInquiry.name: "/rest/v1.0/emoney/account-inquiry",
	topUp.name:         "/rest/v1.0/emoney/topup",
	topUpStatus.name:   "/rest/v1.0/emoney/topup-status",
}

func (d dialect) fundTypes() fundTypes {
	if d == dialectDANA {
		return fundTypes{wallet: "AGENT_TOPUP_FOR_USER_SETTLE", bank: "MERCHANT_WITHDRAW_FOR_CORPORATE"}
	}
	return fundTypes{}
}

// paths are the dialect's in a mode, but for those that the connection names.
func (s settings) paths(mode string) map[string]string {
	paths := maps.Clone(standardPaths)
	if s.BankStatusService == transferStatus.code {
		paths[transferStatus.name] = transferStatusPath
	}
	if s.Dialect == dialectDANA {
		maps.Copy(paths, danaPaths)
		if mode != "live" {
			maps.Copy(paths, danaTestPaths)
		}
	}
	maps.Copy(paths, s.Paths)
	return paths
}
