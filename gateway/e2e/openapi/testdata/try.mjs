// node try.mjs URL KEY MERCHANT: tries calls on the API page, as a merchant would, and
// prints what is wrong: calls that do not succeed, what the page's policy blocked or its
// script threw, and requests to anywhere else.
import { launch, screenshot } from "gerbang-browser";

const [, , url, key, merchant] = process.argv;
const browser = await launch();
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.on("console", (m) => m.type() === "error" && !m.text().includes("401") && console.log(m.text()));
  page.on("pageerror", (error) => console.log(String(error)));
  page.on("request", (r) => r.postData()?.includes("sk_live_") && console.log("it sends a live key"));
  page.on("request", (r) => new URL(r.url()).origin === new URL(url).origin || r.url().startsWith("data:") || console.log(`it asks ${r.url()}`));
  await page.goto(url);
  const answered = async (path) => {
    const block = page.locator(".opblock-post", { has: page.locator(`[data-path="${path}"]`) });
    if ((await block.locator("button.execute").count()) === 0) await block.locator(".opblock-summary-control").click();
    const [answer] = await Promise.all([
      page.waitForResponse((r) => new URL(r.url()).pathname === path),
      block.locator("button.execute").click(),
    ]);
    return answer.json();
  };

  await page.fill("#key", "sk_live_wrong");
  const refused = await answered("/balance");
  if (refused.error_code !== "AUTH_FAILED") console.log(`with a live key: ${JSON.stringify(refused)}`);
  await page.locator("#said", { hasText: "test keys alone" }).waitFor();

  await page.fill("#key", key);
  await page.fill("#merchant", merchant);
  for (const path of ["/balance", "/payments/create", "/payments/status", "/ppob/order", "/wallet1/transfer/wallet"]) {
    const answer = await answered(path);
    if (answer.success !== true) console.log(`${path}: ${JSON.stringify(answer)}`);
  }
  await screenshot(page, "try");
} finally {
  await browser.close();
}
