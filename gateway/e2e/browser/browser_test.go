package browser_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/browser"
)

// TestAxeFindsWhatIsWrong: it is silent about a good page, and names each fault of a
// bad one.
func TestAxeFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	pages := http.NewServeMux()
	pages.HandleFunc("/good", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; img-src data:")
		_, _ = w.Write([]byte(`<!doctype html><html lang="en"><title>Good</title><link rel="icon" href="data:,"><main><h1>Good</h1></main>`))
	})
	pages.HandleFunc("/bad", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		_, _ = w.Write([]byte(`<!doctype html><html><title>Bad</title><main><h1>Bad</h1><input><p style="width:3000px">wide</p>` +
			`<div><svg width="3000" height="1"></svg></div><script>1</script></main>`))
	})
	server := httptest.NewServer(pages)
	t.Cleanup(server.Close)

	every := []string{"VIEWS=every"}
	if out := b.Run(t, "axe.mjs", every, "good="+server.URL+"/good"); out != "" {
		t.Errorf("of a good page it says\n%s", out)
	}
	out := b.Run(t, "axe.mjs", every, "bad="+server.URL+"/bad")
	for _, want := range []string{"bad, phone-dark: html-has-lang", "bad, desktop-light: label", "px wider than the screen", "Content Security Policy"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}

// TestAScriptOfItsOwn imports the kit from wherever it lies, and gets what it is given.
func TestAScriptOfItsOwn(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	script := filepath.Join(t.TempDir(), "own.mjs")
	text := `import { launch } from "gerbang-browser";
const browser = await launch();
const page = await browser.newPage();
await page.setContent("<title>" + process.env.GIVEN + process.argv[2] + "</title>");
console.log(await page.title());
await browser.close();`
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := b.Run(t, script, []string{"GIVEN=a"}, "b"); out != "ab\n" {
		t.Errorf("it prints %q", out)
	}
}
