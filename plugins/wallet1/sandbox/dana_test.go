package sandbox_test

import (
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	dana "github.com/dana-id/dana-go/v2"
	"github.com/dana-id/dana-go/v2/config"
	disbursement "github.com/dana-id/dana-go/v2/disbursement/v1"

	"github.com/seed-f006e74d/gerbang/plugins/wallet1/sandbox"
)

// danaClient is DANA's own client in one of its environments, as an account.
func danaClient(t *testing.T, c *client, environment string) *disbursement.DisbursementAPIService {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(c.key)
	if err != nil {
		t.Fatal(err)
	}
	settings := config.NewConfiguration()
	settings.Servers = config.ServerConfigurations{{URL: c.w.api.URL}, {URL: c.w.api.URL}}
	settings.APIKey = &config.APIKey{
		ENV: environment, X_PARTNER_ID: c.partnerID,
		PRIVATE_KEY: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
	}
	return dana.NewAPIClient(settings).DisbursementAPI
}

// DANA's own client is served in both of its environments, which differ in paths.
func TestDANAsOwnClient(t *testing.T) {
	t.Parallel()
	const topUpFund, bankFund, bank, phone, account = "AGENT_TOPUP_FOR_USER_SETTLE", "MERCHANT_WITHDRAW_FOR_CORPORATE", "014", good, accountNo
	for _, environment := range []string{config.ENV_SANDBOX, config.ENV_PRODUCTION} {
		t.Run(environment, func(t *testing.T) {
			t.Parallel()
			w := open(t, func(o *sandbox.Options) {
				o.Signature, o.Dialect = sandbox.Asymmetric, sandbox.DANA
				o.Drift = time.Since(start) + time.Hour // the client reads the machine's clock
			})
			ctx, api := t.Context(), danaClient(t, w.main, environment)
			sum, none := disbursement.Money{Value: "10000.00", Currency: "IDR"}, disbursement.Money{Value: "0.00", Currency: "IDR"}
			number, bankCode := phone, bank

			holder, _, err := api.DanaAccountInquiry(ctx).DanaAccountInquiryRequest(disbursement.DanaAccountInquiryRequest{
				CustomerNumber: &number, Amount: sum,
				AdditionalInfo: disbursement.DanaAccountInquiryRequestAdditionalInfo{FundType: topUpFund},
			}).Execute()
			if err != nil || holder.ResponseCode != "2003700" || holder.CustomerName == "" || holder.FeeAmount != none {
				t.Errorf("a wallet's holder: %+v %v", holder, err)
			}
			sent, _, err := api.TransferToDana(ctx).TransferToDanaRequest(disbursement.TransferToDanaRequest{
				PartnerReferenceNo: "T-1", CustomerNumber: &number, Amount: sum, FeeAmount: none,
				AdditionalInfo: disbursement.TransferToDanaRequestAdditionalInfo{FundType: topUpFund},
			}).Execute()
			if err != nil || sent.ResponseCode != "2003800" || sent.Amount != sum || *sent.ReferenceNo == "" {
				t.Errorf("a top-up: %+v %v", sent, err)
			}
			found, _, err := api.TransferToDanaInquiryStatus(ctx).TransferToDanaInquiryStatusRequest(
				disbursement.TransferToDanaInquiryStatusRequest{OriginalPartnerReferenceNo: "T-1", ServiceCode: "38"}).Execute()
			if err != nil || found.ResponseCode != "2003900" || found.LatestTransactionStatus != "00" {
				t.Errorf("its status: %+v %v", found, err)
			}

			owner, _, err := api.BankAccountInquiry(ctx).BankAccountInquiryRequest(disbursement.BankAccountInquiryRequest{
				CustomerNumber: w.main.payer, BeneficiaryAccountNumber: account, Amount: sum,
				AdditionalInfo: disbursement.BankAccountInquiryRequestAdditionalInfo{FundType: bankFund, BeneficiaryBankCode: bank},
			}).Execute()
			if err != nil || owner.ResponseCode != "2004200" || owner.BeneficiaryAccountName == "" || *owner.BeneficiaryBankCode != bankCode {
				t.Errorf("a bank account's holder: %+v %v", owner, err)
			}
			reference := "B-1"
			made, _, err := api.TransferToBank(ctx).TransferToBankRequest(disbursement.TransferToBankRequest{
				PartnerReferenceNo: &reference, CustomerNumber: w.main.payer, BeneficiaryAccountNumber: account,
				BeneficiaryBankCode: bank, Amount: sum,
				AdditionalInfo: disbursement.TransferToBankRequestAdditionalInfo{FundType: bankFund},
			}).Execute()
			if err != nil || made.ResponseCode != "2004300" {
				t.Errorf("a transfer to a bank: %+v %v", made, err)
			}
			state, _, err := api.TransferToBankInquiryStatus(ctx).TransferToBankInquiryStatusRequest(
				disbursement.TransferToBankInquiryStatusRequest{OriginalPartnerReferenceNo: &reference, ServiceCode: "00"}).Execute()
			if err != nil || state.ResponseCode != "2000000" || state.LatestTransactionStatus != "00" {
				t.Errorf("its status: %+v %v", state, err)
			}
			if w.main.spent() != 22_500 {
				t.Errorf("spent %s", w.main.spent())
			}
		})
	}
}
