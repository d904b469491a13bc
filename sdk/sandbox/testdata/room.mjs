// node room.mjs NAME=URL: looks at the page of a payment that nobody has paid, has it
// paid from elsewhere, and waits until the page says so without being loaded again. It
// prints what is wrong, and nothing where all is well.
import { findings, launch, screenshot, views } from "gerbang-browser";

const [name, url] = process.argv[2].split("=");
const browser = await launch();
try {
  const page = await browser.newPage();
  let state = "open";
  page.on("console", (m) => m.type() === "error" && console.log(`${state}: ${m.text()}`));
  page.on("pageerror", (error) => console.log(`${state}: ${error}`));
  const look = async () => {
    for (const view of views) {
      await page.setViewportSize(view.viewport);
      await page.emulateMedia({ colorScheme: view.colorScheme });
      (await findings(page)).forEach((found) => console.log(`${name} ${state}, ${view.name}: ${found}`));
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (wide > 0) console.log(`${name} ${state}, ${view.name}: is ${wide} px wider than the screen`);
      await screenshot(page, `${name}-${state}-${view.name}`);
    }
  };
  await page.goto(url, { waitUntil: "load" });
  await look();
  await page.evaluate(() => { window.neverLoadedAgain = true; });
  const paid = await fetch(url, { method: "POST", redirect: "manual", body: new URLSearchParams({ order: "pay" }) });
  if (paid.status !== 303) console.log(`the order to pay was answered ${paid.status}`);
  state = "paid";
  await page.getByText("the gateway answered 200 OK").waitFor();
  if (!(await page.evaluate(() => window.neverLoadedAgain))) console.log("the page was loaded again");
  await look();
  await page.getByRole("button", { name: "Notify again" }).click();
  await page.getByText("the gateway answered 200 OK").nth(1).waitFor();
} finally {
  await browser.close();
}
