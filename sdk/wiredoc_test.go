package sdk_test

import (
	"crypto/x509"
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/pluginpb"
)

func wireDocument(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("WIRE.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestWireDocumentTellsEverything: whoever reads WIRE.md alone misses no method, message,
// field or number of the contract.
func TestWireDocumentTellsEverything(t *testing.T) {
	t.Parallel()
	document := wireDocument(t)
	told := func(name string) {
		if !regexp.MustCompile("`[^`\n]*\\b" + name + "\\b[^`\n]*`").MatchString(document) {
			t.Errorf("WIRE.md does not tell `%s`", name)
		}
	}
	file := pluginpb.File_sdk_pluginpb_provider_proto
	methods := file.Services().Get(0).Methods()
	for i := range methods.Len() {
		told(string(methods.Get(i).Name()))
	}
	messages := file.Messages()
	for i := range messages.Len() {
		m := messages.Get(i)
		if m.Name() != "Connection" { // it has a heading
			told(string(m.Name()))
		}
		for j := range m.Fields().Len() {
			told(string(m.Fields().Get(j).Name()))
		}
	}
	enums := file.Enums()
	for i := range enums.Len() {
		values := enums.Get(i).Values()
		for j := range values.Len() {
			told(shortName(enums.Get(i), values.Get(j)))
		}
	}
	for _, text := range []string{sdk.Handshake.MagicCookieKey, sdk.Handshake.MagicCookieValue, sdk.EnvHostPID} {
		told(regexp.QuoteMeta(text))
	}
}

// shortName is a value as the document calls it: statuses by their whole name, because
// outcomes are called the same without it.
func shortName(e protoreflect.EnumDescriptor, v protoreflect.EnumValueDescriptor) string {
	if e.Name() == "Status" {
		return string(v.Name())
	}
	return strings.TrimPrefix(string(v.Name()), strings.ToUpper(string(e.Name()))+"_")
}

// TestWireDocumentsCertificate: a gateway takes the certificate that WIRE.md shows byte
// by byte.
func TestWireDocumentsCertificate(t *testing.T) {
	t.Parallel()
	_, dump, _ := strings.Cut(wireDocument(t), "\n```\n30 82")
	dump, _, found := strings.Cut("30 82"+dump, "\n```")
	if !found {
		t.Fatal("WIRE.md shows no certificate")
	}
	var der []byte
	for line := range strings.Lines(dump) {
		bytes := regexp.MustCompile(`^\s*((?:[0-9a-f]{2} ?)+)(?:\s|$)`).FindStringSubmatch(line)
		if bytes == nil {
			t.Fatalf("no bytes in %q", line)
		}
		part, err := hex.DecodeString(strings.ReplaceAll(bytes[1], " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		der = append(der, part...)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool() // as go-plugin makes it of the handshake's sixth field
	trusted.AddCert(certificate)
	for at, valid := range map[time.Time]bool{
		certificate.NotBefore.Add(time.Minute): true,
		certificate.NotAfter.Add(time.Minute):  false,
	} {
		_, err = certificate.Verify(x509.VerifyOptions{Roots: trusted, DNSName: "localhost", CurrentTime: at})
		if valid != (err == nil) {
			t.Errorf("at %v: %v", at, err)
		}
	}
	if err := certificate.CheckSignature(certificate.SignatureAlgorithm, certificate.RawTBSCertificate, certificate.Signature); err != nil {
		t.Error(err)
	}
}
