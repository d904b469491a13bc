package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Released builds gerbang and the plugin of payments of a commit, and returns the directory. It skips the test where the commit is not in
// this clone.
func Released(t testing.TB, commit string) string {
	t.Helper()
	root := filepath.Join("..", "..", "..")
	if err := exec.Command("git", "-C", root, "cat-file", "-e", commit).Run(); err != nil {
		t.Skipf("this clone has no commit %s: %v", commit, err)
	}
	dir := t.TempDir()
	archive, tree, bin := filepath.Join(dir, "tree.tar"), filepath.Join(dir, "tree"), filepath.Join(dir, "bin")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, step := range []*exec.Cmd{
		exec.Command("git", "-C", root, "archive", "--output", archive, commit),
		exec.Command("tar", "-x", "-C", tree, "-f", archive),
		exec.Command("go", "-C", tree, "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w", "-o", bin+"/", "./gateway/cmd/gerbang"),
		exec.Command("go", "-C", tree, "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w", "-o", bin+"/plugins/", "./plugins/payments"),
	} {
		if out, err := step.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", step.Args, err, out)
		}
	}
	return bin
}
