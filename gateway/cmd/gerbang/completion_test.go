package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// completions are lines and what completes their last word. Every shell must make the same of them.
var completions = map[string][]string{
	"gerbang merch":                             {"merchant"},
	"gerbang key ":                              {"create", "rename", "revoke", "rotate"},
	"gerbang --json key r":                      {"rename", "revoke", "rotate"},
	"gerbang operator token l":                  {"list"},
	"gerbang merchant show mer_1 --j":           {"--json"},
	"gerbang key create mer_1 --mode ":          {"live", "test"},
	"gerbang key create mer_1 --mode l":         {"live"},
	"gerbang callback secret sw":                {"switch"},
	"gerbang callback secret switch mer_1 --mo": {"--mode"},
	"gerbang check --config gerbang.":           {"gerbang.yaml"},
	"gerbang policy push pol":                   {"policy"},
	"gerbang key create mer_1 --mode live --mo": nil, // it has been said
	"gerbang merchant show mer":                 nil, // nobody knows
	"gerbang plugin-":                           nil, // hidden
}

func TestShellsComplete(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "policy"), 0o700),
		os.WriteFile(filepath.Join(dir, "gerbang.yaml"), nil, 0o600),
		os.Mkdir(filepath.Join(dir, "bin"), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(executable, filepath.Join(dir, "bin", "gerbang")); err != nil { // TestMain knows the name
		t.Fatal(err)
	}
	for shell, ask := range map[string]string{
		"bash": `source <(gerbang completion bash)
			line=$1; read -ra COMP_WORDS <<<"${line//=/ = }"; [[ $line == *' ' || $line == *= ]] && COMP_WORDS+=("")
			COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _gerbang; printf '%s\n' "${COMPREPLY[@]}"`,
		"fish": `gerbang completion fish | source; complete -C $argv[1] | string replace -r '\t.*' ''; true`,
	} {
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not here", shell)
			continue
		}
		for line, want := range completions {
			t.Run(shell+" "+line, func(t *testing.T) {
				t.Parallel()
				args := []string{"-c", ask, shell, line}
				if shell == "fish" {
					args = []string{"-N", "-c", ask, line}
				}
				command := exec.CommandContext(t.Context(), path, args...)
				command.Dir, command.Env = dir, append(os.Environ(), "PATH="+dir+"/bin:"+os.Getenv("PATH"), "HOME="+dir)
				out, err := command.Output()
				if err != nil {
					t.Fatal(err)
				}
				got := strings.Fields(strings.ReplaceAll(string(out), "/\n", "\n")) // fish marks a directory
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("completed %q, want %q", got, want)
				}
			})
		}
	}
}

func TestWordsOfALineAreCompleted(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"key create mer_1 --mode=":       "live test",
		"key create mer_1 --mode = t":    "test", // as bash has it
		"key create mer_1 --mode =":      "live test",
		"check --config=":                completeFiles,
		"connection set m p --cred":      "--credentials-file",
		"connection set m p --":          "--mode --credentials-file --unverified --owner",
		"key create m --nothing=":        "",
		"plugin approve --read a --read": "--read", // may be repeated
		"plugin check ":                  completeFiles,
		"policy impact ":                 completeFiles,
		"init --from ":                   completeFiles,
		"keyset create ":                 completeFiles,
		"merchant create Toko ":          "",
	} {
		parser, err := (&program{}).parser(t.Context(), &commands{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, offered := range completed(parser.Model.Node, strings.Split(line, " ")) {
			word, _, _ := strings.Cut(offered, "\t")
			if word != "--json" && word != "--verbose" && word != "--help" {
				got = append(got, word)
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: %q, want %q", line, text, want)
		}
	}
}
