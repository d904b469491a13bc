package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	shared = `syntax = "proto3";
package sample;
option go_package = "example.org/sample";
message Shared { string name = 1; }
`
	service = `syntax = "proto3";
package sample;
import "sample/shared.proto";
import "google/protobuf/timestamp.proto";
option go_package = "example.org/sample";
// Echo answers what it is asked.
service Echo { rpc Say(Shared) returns (Said); }
message Said { google.protobuf.Timestamp at = 1; }
`
)

func sampleRoot(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestImportsComeBeforeTheirUsers(t *testing.T) {
	t.Parallel()
	root := sampleRoot(t, map[string]string{"sample/shared.proto": shared, "sample/echo.proto": service})
	request, err := compile(t.Context(), root, []string{"sample/echo.proto"})
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, file := range request.GetProtoFile() {
		order = append(order, file.GetName())
	}
	want := "sample/shared.proto google/protobuf/timestamp.proto sample/echo.proto"
	if got := strings.Join(order, " "); got != want {
		t.Errorf("order of files:\n got %s\nwant %s", got, want)
	}
}

func TestGenerateWritesMessagesAndServiceBesideTheSource(t *testing.T) {
	t.Parallel()
	root := sampleRoot(t, map[string]string{"sample/shared.proto": shared, "sample/echo.proto": service})
	if err := generate(t.Context(), root, []string{"sample/shared.proto", "sample/echo.proto"}); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"sample/shared.pb.go":    "type Shared struct",
		"sample/echo.pb.go":      "type Said struct",
		"sample/echo_grpc.pb.go": "// Echo answers what it is asked.",
	} {
		got, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Error(err)
		} else if !strings.Contains(string(got), text) {
			t.Errorf("%s has no %q", file, text)
		}
	}
}

func TestAFaultNamesFileAndLine(t *testing.T) {
	t.Parallel()
	broken := strings.Replace(shared, "string name", "strong name", 1)
	root := sampleRoot(t, map[string]string{"sample/shared.proto": broken})
	err := generate(t.Context(), root, []string{"sample/shared.proto"})
	if err == nil || !strings.Contains(err.Error(), "shared.proto:4:") {
		t.Errorf("error = %v, want one that names shared.proto, line 4", err)
	}
}
