// What every browser test needs: Chromium, the views that pages are looked at in,
// and axe. A test's own script imports it as "gerbang-browser".
import { chromium } from "playwright-core";
import { createHash } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";

// Chromium is the machine's own: Playwright downloads none. Its sandbox needs user
// namespaces, which containers often lack; tests visit their own pages only.
export const launch = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"],
  });

// views are the screens a page must be good on.
export const views = [
  { name: "phone-light", viewport: { width: 390, height: 844 }, colorScheme: "light" },
  { name: "phone-dark", viewport: { width: 390, height: 844 }, colorScheme: "dark" },
  { name: "desktop-light", viewport: { width: 1280, height: 800 }, colorScheme: "light" },
  { name: "desktop-dark", viewport: { width: 1280, height: 800 }, colorScheme: "dark" },
];

// drawn is a number below n, drawn by the commit and a name.
const drawn = (name, n) => createHash("sha256").update(`${process.env.GERBANG_TEST_SAMPLE ?? "none"}/${name}`).digest()[0] % n;

// few tells whether the change tier runs, which judges a part of what the long tier judges.
const few = process.env.VIEWS === "one";

// viewsOf are the views in which a page is judged: in the change tier one, drawn by the commit and the page's name.
export const viewsOf = (name) => (few ? [views[drawn(name, views.length)]] : views);

// oneIn is every nth of the cases in the change tier, the first drawn by the commit and the name, and all in the long tier.
export const oneIn = (n, name, cases) => {
  const first = few ? drawn(name, n) : 0;
  return cases.filter((_, i) => !few || i % n === first);
};

// axe is the minified source: each page that is judged compiles it anew.
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// findings runs axe on a page as it stands, each of its rules, and gives one line a
// finding. It is evaluated by the debugger, so a page's own policy does not stop it, and not as an argument of
// Playwright's own script, which would compile it twice.
export const findings = async (page) => {
  if (!(await page.evaluate(() => "axe" in window))) {
    const inspector = await page.context().newCDPSession(page);
    await inspector.send("Runtime.evaluate", { expression: axe });
    await inspector.detach();
  }
  const { violations } = await page.evaluate(() => window.axe.run({ resultTypes: ["violations"] }));
  return violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${v.help}: ${n.target.join(" ")} ${n.html.slice(0, 200)}`));
};

// screenshot keeps what a page looks like, to its end, where SCREENSHOTS names a directory.
export const screenshot = async (page, name) => {
  const dir = process.env.SCREENSHOTS;
  if (!dir) return;
  await mkdir(dir, { recursive: true });
  await page.screenshot({ path: join(dir, `${name}.png`), fullPage: true });
};
