// Both consoles without a mouse: an owner signs in, issues a key, looks for a payment and
// revokes the key; an operator limits a merchant, and reads a page that renews itself.
// Wherever the focus is, it can be seen.
import { admitted, check, mail, renewed, story, until } from "./people.mjs";

const { OWNER_URL, OPERATOR_URL, API_URL, MERCHANT, TEST_KEY } = process.env;
const own = (path) => `${new URL(OWNER_URL).origin}/${MERCHANT}/test${path}`;
const at = (path) => new URL(OPERATOR_URL).origin + path;

// unseen says why whoever looks at the page does not see what has the focus, "" if they do.
const unseen = (page) => page.evaluate(() => {
  const one = document.activeElement;
  if (one === document.body) return "";
  const { outlineStyle, outlineWidth, outlineOffset } = getComputedStyle(one);
  const name = one.outerHTML.slice(0, 100);
  if (outlineStyle === "none" || parseFloat(outlineWidth) < 2) return `${name} has no ring`;
  const ring = Math.max(0, parseFloat(outlineWidth) + parseFloat(outlineOffset)), box = one.getBoundingClientRect();
  if (box.bottom < 0 || box.top > innerHeight || box.right < 0 || box.left > innerWidth) return `${name} is out of sight`;
  for (let around = one.parentElement; around && around !== document.body; around = around.parentElement) {
    if (getComputedStyle(around).overflowX === "visible") continue;
    const outer = around.getBoundingClientRect();
    if (box.left - ring < outer.left - 1 || box.top - ring < outer.top - 1 || box.bottom + ring > outer.bottom + 1) return `${name} has a ring that ${around.className} cuts off`;
  }
  return "";
});

// to moves the focus to what a selector names, stop by stop.
const to = async (person, selector) => {
  const { page } = person;
  await page.waitForSelector(selector);
  for (let i = 0; i < 120; i++) {
    await page.keyboard.press("Tab");
    const hidden = await unseen(page);
    if (hidden) person.problems.push(`${page.url()}: ${hidden}`);
    if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return;
  }
  throw new Error(`${page.url()}: the keyboard does not reach ${selector}`);
};

const press = async (person, selector, key = "Enter") => {
  await to(person, selector);
  await person.page.keyboard.press(key);
};

const write = async (person, selector, text) => {
  await to(person, selector);
  await person.page.keyboard.type(text);
};

// confirms types a fresh code into the page's only field, which has the focus.
const confirms = async (person) => {
  await person.page.waitForURL(/\/confirm/);
  await person.page.waitForFunction(() => document.activeElement.name === "code");
  await person.page.keyboard.type(await person.code());
  await person.page.keyboard.press("Enter");
  await person.page.waitForURL((url) => url.pathname !== "/confirm");
};

await story(async (somebody) => {
  const owner = await somebody("Owner");
  const { page } = owner;
  await owner.accept(OWNER_URL, "a sentence of five words");
  await page.context().clearCookies();
  await fetch(`${API_URL}/payments/create`, {
    method: "POST", headers: { Authorization: `Bearer ${TEST_KEY}`, "Content-Type": "application/json" },
    body: JSON.stringify({ merchant_id: MERCHANT, amount: 25000, payer_email: "payer@example.com", external_id: "looked-for" }),
  });

  // Sign in. The first field has the focus already.
  await until(async () => {
    await page.goto(own("/"));
    await page.waitForFunction(() => document.activeElement.name === "email");
    await page.keyboard.type(mail("owner"));
    await write(owner, "[name=password]", "a sentence of five words");
    await write(owner, "[name=code]", await owner.code());
    return admitted(page, () => page.keyboard.press("Enter"));
  }, "the owner can't sign in");
  await page.waitForURL(own("/"));

  // Issue a key: the page that a link leads to begins at its first stop.
  await press(owner, ".side a[href$='/keys']");
  await page.waitForSelector(".side [aria-current][href$='/keys']");
  await page.keyboard.press("Tab");
  const first = await page.evaluate(() => document.activeElement.outerHTML.slice(0, 100));
  check(first.includes("skip"), `the next page begins at ${first}`);
  await page.keyboard.press("Enter");
  await press(owner, "main a.button[href$='/keys/new']");
  await confirms(owner);
  await press(owner, "[name=scope]", "Space");
  check((await page.locator("[name=scope]:checked").count()) === (await page.locator("[name=scope]").count()) - 1, "a scope is not taken away by the keyboard");
  await press(owner, "main form button");
  await page.waitForSelector("#secret");
  const key = await page.locator("#secret").textContent();
  await press(owner, "main a.button");

  // The menu opens and closes, and the focus stays with it.
  await page.waitForURL(own("/keys"));
  await press(owner, ".person summary");
  await to(owner, ".person a[href='/profile']");
  await page.keyboard.press("Escape");
  check(await page.evaluate(() => document.activeElement.matches(".person summary") && !document.querySelector(".person[open]")), "Escape does not close the menu");

  // Look for a payment.
  await press(owner, ".side a[href$='/test/']");
  await page.waitForURL(own("/"));
  await write(owner, "main [name=id]", "looked-for");
  await page.keyboard.press("Enter");
  await page.waitForSelector("h1 >> text=looked-for");

  // Revoke the key. Its question is the browser's own dialog, which is answered.
  await press(owner, ".side a[href$='/keys']");
  await page.waitForURL(own("/keys"));
  const revoke = `form[action$='/${key.split("_")[2]}/revoke'] button`;
  await press(owner, revoke);
  await page.waitForSelector("td .badge.bad");
  check((await page.locator(revoke).count()) === 0, "the key is not revoked");

  // An operator limits a merchant in a part of the page that opens.
  const operator = await somebody("Operator");
  await operator.accept(OPERATOR_URL, "another sentence of words");
  await operator.page.goto(at(`/merchants/${MERCHANT}`));
  const limits = async () => {
    await press(operator, "details:has(form[action$='/limits']) > summary");
    await write(operator, "form[action$='/limits'] [name=name]", "payout:day");
    await write(operator, "form[action$='/limits'] [name=amount]", "5000000");
    await write(operator, "form[action$='/limits'] [name=reason]", "as they say");
    await press(operator, "form[action$='/limits'] button");
  };
  await limits();
  await confirms(operator);
  check((await operator.page.inputValue("form[action$='/limits'] [name=reason]")) === "as they say", "the form does not come back filled");
  await press(operator, "form[action$='/limits'] button");
  await operator.page.waitForSelector("td >> text=Rp5.000.000");

  // A page that renews itself keeps the focus where it is.
  await operator.page.goto(at("/traffic"));
  const stop = "#traffic > .scroll >> nth=1";
  await operator.page.waitForSelector(stop);
  await to(operator, "#traffic > .scroll");
  await to(operator, "#traffic > .scroll");
  await operator.page.evaluate(() => { document.activeElement.dataset.before = "yes"; });
  await operator.page.waitForSelector("[data-before]", { state: "detached" });
  await operator.page.waitForFunction(() => document.activeElement.matches("#traffic > .scroll") && document.activeElement === document.querySelectorAll("#traffic > .scroll")[1]);
  check((await unseen(operator.page)) === "", "the focus can't be seen after the page renewed itself");

  // It leaves a phone's rows where they were moved, and stays where it can't renew itself.
  const { page: desk } = operator;
  await desk.setViewportSize({ width: 390, height: 844 });
  await desk.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  const rows = () => desk.evaluate(() => [...document.querySelectorAll(".side, #traffic .scroll")].map((row) => row.scrollLeft));
  await desk.evaluate(() => document.querySelectorAll(".side, #traffic .scroll").forEach((row) => { row.scrollLeft = 25; }));
  const moved = await rows();
  check(moved[0] === 25, `no row can be moved: ${moved}`);
  const again = async () => {
    await desk.evaluate(() => { document.querySelector("#traffic").dataset.before = "yes"; });
    await desk.waitForSelector("#traffic[data-before]", { state: "detached" });
  };
  await desk.evaluate(() => { document.querySelector("#traffic details").open = true; });
  await again();
  check(await desk.isVisible("#traffic details .scroll"), "the chart's table closes where the page renews itself");
  await desk.evaluate(() => { document.querySelector("#traffic details").open = false; });
  check((await rows()).join() === moved.join(), `the page that renews itself moves its rows from ${moved} to ${await rows()}`);
  await desk.route("**/traffic", (route) => route.fulfill({ status: 429, body: "Too many visitors." }));
  await renewed(desk);
  await renewed(desk);
  check(await desk.isVisible("#stale"), "a page that could not renew itself does not say so");
  await operator.seen("operators-stale");
  await desk.setViewportSize({ width: 390, height: 844 });
  await desk.unroute("**/traffic");
  check(!(await desk.title()).includes("did not work"), "a page that could not renew itself says nothing else");
  await again();
  check(!(await desk.isVisible("#stale")), "a page that has renewed itself says that it is of before");

  // A link that reaches no gateway says so.
  const { length } = operator.problems;
  await desk.route("**/audit", (route) => route.abort("connectionrefused"));
  await desk.click(".side a[href='/audit']");
  await desk.waitForSelector("#problem .warning");
  operator.problems.length = length; // the browser and htmx note it, too
  await operator.seen("operators-unreached");
  await desk.unroute("**/audit");

  // Who follows another link before the first one's page comes is led by the last.
  await desk.setViewportSize({ width: 1280, height: 800 });
  let answer;
  await desk.route("**/audit", async (route) => {
    await new Promise((resolve) => { answer = resolve; });
    await route.continue();
  });
  const late = desk.waitForResponse(at("/audit"));
  await desk.click(".side a[href='/audit']");
  await desk.click(".side a[href='/replicas']");
  await desk.waitForURL(at("/replicas"));
  answer();
  await (await late).finished();
  await desk.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  check((await desk.textContent("h1")) === "Replicas" && desk.url() === at("/replicas"), `the link followed last leads to ${await desk.textContent("h1")} at ${desk.url()}`);
});
