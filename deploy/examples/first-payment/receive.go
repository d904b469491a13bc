//go:build ignore

package main

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func verified(header http.Header, body, key []byte) bool {
	moment := header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(moment, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", header.Get("webhook-id"), moment, body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for given := range strings.SplitSeq(header.Get("webhook-signature"), " ") {
		if hmac.Equal([]byte(given), []byte(want)) {
			return true
		}
	}
	return false
}

func main() {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Getenv("CALLBACK_SECRET"), "whsec_"))
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(":"+cmp.Or(os.Getenv("PORT"), "3000"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || !verified(r.Header, body, key) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusNoContent)
		fmt.Println(string(body))
	})))
}
