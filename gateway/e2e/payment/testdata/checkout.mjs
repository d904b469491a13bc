// node checkout.mjs PAGE SANDBOX: opens a checkout page, pays it in the sandbox, and
// waits for the page to say so without being loaded again. It prints what is wrong.
import { launch, screenshot, views } from "gerbang-browser";

const [, , url, sandbox] = process.argv;
const browser = await launch();
try {
  const page = await browser.newPage({ viewport: views[0].viewport });
  await page.goto(url);
  const text = await page.locator("main").innerText();
  if (!text.includes("18.000") || !text.includes("Nasi goreng")) console.log(`the page shows ${text}`);
  if (!(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth))) console.log("the page is wider than a phone");
  await page.evaluate(() => { window.neverLoadedAgain = true; });
  const paid = await fetch(`${sandbox}/pay`, { method: "POST", body: JSON.stringify({ url }) });
  if (!paid.ok) console.log(`the sandbox does not pay: ${paid.status} ${await paid.text()}`);
  await page.locator("section.paid").waitFor();
  if (!(await page.evaluate(() => window.neverLoadedAgain === true))) console.log("the page was loaded again");
  if ((await page.locator("link[rel=payment], meta[name=qr-string], img.qr").count()) > 0) console.log("what is paid can still be paid from the page");
  await screenshot(page, "checkout-paid");
} finally {
  await browser.close();
}
