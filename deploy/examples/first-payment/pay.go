//go:build ignore

package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	body := fmt.Sprintf(`{"merchant_id": %q, "external_id": "first-%d", "amount": 50000,
		"payer_email": "payer@example.com", "description": "First payment"}`, os.Getenv("MERCHANT"), time.Now().UnixNano())
	request, err := http.NewRequest(http.MethodPost, os.Getenv("API")+"/payments/create", strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("KEY"))
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(os.Stdout, answer.Body); err != nil {
		log.Fatal(err)
	}
}
