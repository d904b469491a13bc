// What every browser test needs: Chromium, the views that pages are looked at in,
// and axe. A test's own script imports it as "gerbang-browser".
import axe from "axe-core";
import { chromium } from "playwright-core";
import { createHash } from "node:crypto";
import { mkdir } from "node:fs/promises";
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

// viewsOf are the views in which a page is judged: one, drawn by the commit and the page's name, where VIEWS is one.
export const viewsOf = (name) => {
  if (process.env.VIEWS !== "one") return views;
  const seed = process.env.GERBANG_TEST_SAMPLE ?? "none";
  return [views[createHash("sha256").update(`${seed}/${name}`).digest()[0] % views.length]];
};

// findings runs axe on a page as it stands, each of its rules, and gives one line a
// finding. It is evaluated by the debugger, so a page's own policy does not stop it.
export const findings = async (page) => {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe.source);
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
