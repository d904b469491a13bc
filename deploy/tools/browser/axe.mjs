// node axe.mjs NAME=URL...: opens each page in its views, and prints what is wrong
// with it: what axe finds, what the page's policy blocked or its script threw, and
// whether it must be scrolled sideways. It prints nothing where all is well.
import { findings, launch, screenshot, viewsOf } from "gerbang-browser";

const pages = process.argv.slice(2).map((arg) => {
  const at = arg.indexOf("=");
  return { name: arg.slice(0, at), url: arg.slice(at + 1) };
});
if (pages.length === 0) throw new Error("name the pages: NAME=URL...");

const browser = await launch();
try {
  const page = await browser.newPage();
  let name, view, address;
  const say = (text) => console.log(`${name}, ${view}: ${text}`);
  // That a page itself is a 404 is no fault of the page.
  page.on("console", (m) => m.type() === "error" && !(m.location().url === address && m.text().startsWith("Failed to load")) && say(m.text()));
  page.on("pageerror", (error) => say(String(error)));
  for (const { name: shown, url } of pages) {
    name = shown;
    address = url;
    view = "loading";
    await page.goto(url, { waitUntil: "load" });
    for (const { name: seen, viewport, colorScheme } of viewsOf(name)) {
      view = seen;
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme });
      (await findings(page)).forEach(say);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (wide > 0) say(`is ${wide} px wider than the screen`);
      await screenshot(page, `${name}-${view}`);
    }
  }
} finally {
  await browser.close();
}
