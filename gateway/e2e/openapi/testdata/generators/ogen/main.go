// Makes a payment with what ogen generated, has it paid, and asks until it is.
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

type key string

func (k key) Bearer(context.Context, api.OperationName) (api.Bearer, error) {
	return api.Bearer{Token: string(k)}, nil
}

func main() {
	ctx := context.Background()
	client, err := api.NewClient(os.Getenv("GERBANG_URL"), key(os.Getenv("GERBANG_KEY")))
	if err != nil {
		log.Fatal(err)
	}
	reference := os.Getenv("REFERENCE")
	made, err := client.PaymentsCreate(ctx, &api.PaymentsCreateRequest{
		MerchantID: os.Getenv("GERBANG_MERCHANT"), Amount: 50000, PayerEmail: "payer@example.com", ExternalID: api.NewOptString(reference),
	}, api.PaymentsCreateParams{})
	created, is := made.(*api.PaymentsCreateOKHeaders)
	if err != nil || !is {
		log.Fatalf("%T %v", made, err)
	}
	page := created.Response.Data.CheckoutURL.Value
	if _, err := http.Post(os.Getenv("SANDBOX")+"/pay", "application/json", strings.NewReader(`{"url":"`+page.String()+`"}`)); err != nil {
		log.Fatal(err)
	}
	for status := api.PaymentStatus(""); status != api.PaymentStatusPAID; time.Sleep(time.Second / 5) {
		now, err := client.PaymentsStatus(ctx, &api.PaymentsStatusRequest{ExternalID: reference}, api.PaymentsStatusParams{})
		told, is := now.(*api.PaymentsStatusOKHeaders)
		if err != nil || !is {
			log.Fatalf("%T %v", now, err)
		}
		status = told.Response.Data.Status
	}
	fmt.Println("PAID")
}
