package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../../gateway/catalog/testdata/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	files, err := Files(document)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is out of date: go generate ./sdk/merchant", name)
		}
	}
}
