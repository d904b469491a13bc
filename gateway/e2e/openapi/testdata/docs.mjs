// node docs.mjs URL: judges the API page in its views, as it opens and with an operation
// open, and prints what is wrong.
import { findings, launch, screenshot, viewsOf } from "gerbang-browser";

const browser = await launch();
try {
  const page = await browser.newPage();
  page.on("console", (m) => m.type() === "error" && console.log(m.text()));
  page.on("pageerror", (error) => console.log(String(error)));
  const judge = async (state) => {
    for (const { name, viewport, colorScheme } of viewsOf(`docs-${state}`)) {
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.waitForFunction((dark) => document.documentElement.classList.contains("dark-mode") === dark, colorScheme === "dark");
      for (const found of await findings(page)) console.log(`${state}, ${name}: ${found}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (wide > 0) console.log(`${state}, ${name}: is ${wide} px wider than the screen`);
      await screenshot(page, `docs-${state}-${name}`);
    }
    await page.setViewportSize({ width: 1280, height: 800 });
  };
  await page.goto(process.argv[2]);
  await page.waitForSelector(".opblock");
  await judge("closed");
  await page.click(".opblock-post .opblock-summary-control >> nth=0");
  await page.waitForSelector(".opblock.is-open button.execute");
  await judge("open");
} finally {
  await browser.close();
}
