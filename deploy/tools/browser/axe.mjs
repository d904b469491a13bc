// node axe.mjs NAME=URL...: opens each page in each view, and prints what is wrong
// with it: what axe finds, what the page's policy blocked or its script threw, and
// whether it must be scrolled sideways. It prints nothing where all is well.
import { findings, launch, screenshot, views } from "gerbang-browser";

const pages = process.argv.slice(2).map((arg) => {
  const at = arg.indexOf("=");
  return { name: arg.slice(0, at), url: arg.slice(at + 1) };
});
if (pages.length === 0) throw new Error("name the pages: NAME=URL...");

const browser = await launch();
try {
  for (const { name: view, ...settings } of views) {
    const context = await browser.newContext(settings);
    for (const { name, url } of pages) {
      const page = await context.newPage();
      const say = (text) => console.log(`${name}, ${view}: ${text}`);
      page.on("console", (m) => m.type() === "error" && say(m.text()));
      page.on("pageerror", (error) => say(String(error)));
      await page.goto(url, { waitUntil: "load" });
      (await findings(page)).forEach(say);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (wide > 0) say(`is ${wide} px wider than the screen`);
      await screenshot(page, `${name}-${view}`);
      await page.close();
    }
    await context.close();
  }
} finally {
  await browser.close();
}
