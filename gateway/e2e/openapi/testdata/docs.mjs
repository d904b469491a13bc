// node docs.mjs URL: judges the API page in each view, as it opens and with an operation
// open, and prints what is wrong. What axe finds in Swagger UI's own markup, which is the
// library's and can't be changed here, is listed by rule, with where and why; a rule that finds nothing any
// more is wrong, too.
import { findings, launch, screenshot, views } from "gerbang-browser";

const known = {
  "heading-order": { in: "<h4>", why: "the schemas' heading is of the fourth level after the webhooks' second" },
  region: { in: "info__description", why: "the description stands before the part that it has as its main one" },
  "scrollable-region-focusable": { in: "microlight", why: "an example is wider than a phone and no stop of the keyboard" },
};

const browser = await launch();
try {
  const page = await browser.newPage();
  page.on("console", (m) => m.type() === "error" && console.log(m.text()));
  page.on("pageerror", (error) => console.log(String(error)));
  const met = new Set();
  const judge = async (state) => {
    for (const { name, viewport, colorScheme } of views) {
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.waitForFunction((dark) => document.documentElement.classList.contains("dark-mode") === dark, colorScheme === "dark");
      for (const found of await findings(page)) {
        const rule = found.slice(0, found.indexOf(":"));
        met.add(rule);
        if (!(rule in known) || !found.includes(known[rule].in)) console.log(`${state}, ${name}: ${found}`);
      }
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (wide > 0) console.log(`${state}, ${name}: is ${wide} px wider than the screen`);
      await screenshot(page, `docs-${state}-${name}`);
    }
  };
  await page.goto(process.argv[2]);
  await page.waitForSelector(".opblock");
  await judge("closed");
  await page.click(".opblock-post .opblock-summary-control >> nth=0");
  await page.waitForSelector(".opblock.is-open button.execute");
  await judge("open");
  for (const rule of Object.keys(known)) if (!met.has(rule)) console.log(`${rule} finds nothing any more: it must not be listed`);
} finally {
  await browser.close();
}
