package manifests_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// TestCompose: compose reads the file, what it mounts is there, and no gateway may do more than it needs.
func TestCompose(t *testing.T) {
	t.Parallel()
	file, err := filepath.Abs("../../container/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	options, err := cli.NewProjectOptions([]string{file}, cli.WithProfiles([]string{"*"}))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gateways := 0
	for name, service := range project.Services {
		for _, v := range service.Volumes {
			if v.Type == types.VolumeTypeBind {
				if _, err := os.Stat(v.Source); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		if _, tag, _ := strings.Cut(service.Image, ":"); tag == "" || tag == "latest" {
			t.Errorf("%s: the image %s has no version", name, service.Image)
		}
		for _, port := range service.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s is reached from other machines at %s", name, port.Published)
			}
		}
		if !strings.HasPrefix(service.Image, "gerbang:") {
			continue
		}
		gateways++
		if !service.ReadOnly || len(service.CapDrop) != 1 || service.CapDrop[0] != "ALL" || len(service.SecurityOpt) != 1 {
			t.Errorf("%s may do more than it needs", name)
		}
	}
	if gateways != 4 {
		t.Errorf("%d services are gateways", gateways)
	}
}
