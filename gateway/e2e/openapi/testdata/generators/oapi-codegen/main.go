// Makes a payment with what oapi-codegen generated, has it paid, and asks until it is.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"generated/api"
)

func main() {
	ctx := context.Background()
	client, err := api.NewClientWithResponses(os.Getenv("GERBANG_URL"), api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Getenv("GERBANG_KEY"))
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	reference := os.Getenv("REFERENCE")
	made, err := client.PaymentsCreateWithResponse(ctx, nil, api.PaymentsCreateRequest{
		MerchantId: os.Getenv("GERBANG_MERCHANT"), Amount: 50000, PayerEmail: "payer@example.com", ExternalId: &reference,
	})
	if err != nil || made.JSON200 == nil {
		log.Fatalf("%+v %v", made, err)
	}
	page := *made.JSON200.Data.CheckoutUrl
	if _, err := http.Post(os.Getenv("SANDBOX")+"/pay", "application/json", strings.NewReader(`{"url":"`+page+`"}`)); err != nil {
		log.Fatal(err)
	}
	for status := api.PaymentStatus(""); status != api.PaymentStatusPAID; time.Sleep(time.Second / 5) {
		now, err := client.PaymentsStatusWithResponse(ctx, nil, api.PaymentsStatusRequest{ExternalId: reference})
		if err != nil || now.JSON200 == nil {
			log.Fatalf("%+v %v", now, err)
		}
		status = now.JSON200.Data.Status
	}
	fmt.Println("PAID")
}
