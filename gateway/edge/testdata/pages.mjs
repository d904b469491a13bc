// node pages.mjs URL: what the payers' pages must show on a phone without scrolling,
// and on paper. It prints what is wrong.
import { launch, screenshot, views } from "gerbang-browser";

const [, , url] = process.argv;
const browser = await launch();
try {
  const page = await browser.newPage({ viewport: views[0].viewport });
  for (const name of ["qr", "test"]) {
    await page.goto(`${url}/checkout/${name}`);
    for (const part of [".amount", ".deadline", ".mark", ".payee", ".nmid", ".qr"]) {
      const box = await page.locator(part).boundingBox();
      if (!box || box.y + box.height > 844) console.log(`${name}: ${part} is below the fold`);
    }
  }
  await page.goto(`${url}/checkout/paid`);
  if (!(await page.locator("[data-print]").isVisible())) console.log("paid: nothing offers to print");
  await page.emulateMedia({ media: "print" });
  for (const part of ["nav", ".button", "[data-print]"]) {
    if (await page.locator(part).first().isVisible()) console.log(`print: ${part} is on paper`);
  }
  for (const part of [".amount", ".at", "dl", ".merchant"]) {
    if (!(await page.locator(part).isVisible())) console.log(`print: ${part} is not on paper`);
  }
  await screenshot(page, "paid-print");
} finally {
  await browser.close();
}
