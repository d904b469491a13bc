// Every page of both consoles that the other stories do not judge, in both modes and both
// languages, with something on it: movements of each kind, a statement line that pays
// what is paid already, secrets that are shown once, and what is shown where something is refused. Of what the other
// stories show in English, and this one in Indonesian alone, the change tier judges every third page.
import { oneIn } from "gerbang-browser";
import { check, mail, mailed, story, until } from "./people.mjs";

const { OWNER_URL, OPERATOR_URL, API_URL, SANDBOX_URL, MERCHANT, LIVE_KEY, TEST_KEY } = process.env;
const own = (mode, path) => `${new URL(OWNER_URL).origin}/${MERCHANT}/${mode}${path}`;
const at = (path) => new URL(OPERATOR_URL).origin + path;

const post = async (url, body, headers = {}) => (await fetch(url, { method: "POST", headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) })).json();

// sells makes a movement of each kind in a mode.
const sells = async (mode, key) => {
  const made = {};
  for (const [kind, path, body] of [
    ["payments", "/payments/create", { merchant_id: MERCHANT, amount: 25000, payer_email: "payer@example.com", external_id: `payment-${mode}`, type: "qris" }],
    ["orders", "/ppob/order", { sku: "xld10", target: "087800001230", ref_id: `order-${mode}` }],
    ["transfers", "/wallet1/transfer/bank", { bank_code: "014", account_no: "2460888509", account_name: "Nasabah Contoh 8509", amount: 50000, external_id: `transfer-${mode}` }],
    ["collections", "/wallet2/create", { merchant_id: MERCHANT, amount: 18000, payer_email: "payer@example.com", external_id: `collection-${mode}` }],
  ]) {
    made[kind] = await post(API_URL + path, body, { Authorization: `Bearer ${key}`, "X-Callback-URL": `${SANDBOX_URL}/inbox` });
    check(made[kind].success, `${path} in ${mode} mode: ${JSON.stringify(made[kind])}`);
  }
  return made;
};

await story(async (somebody) => {
  const made = await sells("test", TEST_KEY);
  await sells("live", LIVE_KEY);
  for (const time of ["once", "again"]) {
    const paid = await post(`${SANDBOX_URL}/pay`, { qr_string: made.collections.data.qr_string });
    check(paid.amount === made.collections.data.amount, `paid ${time}: ${JSON.stringify(paid)}`);
  }

  const owner = await somebody("Owner");
  const { page } = owner;
  await owner.accept(OWNER_URL, "a sentence of five words");

  // The merchants' console: movements of each kind in test mode, and every page in live mode.
  const shown = async (mode, kind, language) => {
    await page.goto(own(mode, `/${kind}`));
    await page.click(`main tbody a >> nth=0`);
    await page.waitForSelector("#movement");
    await owner.seen(`pages-${language}-${mode}-${kind}-one`);
  };
  for (const kind of ["orders", "transfers", "collections"]) await shown("test", kind, "en");

  // A movement's page has what its status call answers: of a sold code, its serial number.
  const status = (path, body) => post(API_URL + path, body, { Authorization: `Bearer ${TEST_KEY}` });
  for (const [kind, path, body, part] of [
    ["orders", "/ppob/status", { ref_id: "order-test" }, "sn"],
    ["transfers", "/wallet1/transfer/status", { external_id: "transfer-test" }, "fee"],
    ["collections", "/wallet2/status", { external_id: "collection-test" }, "paid_at"],
  ]) {
    const { remaining_quota, ...data } = (await status(path, body)).data; // that is not the movement's
    check(data[part] ?? false, `${path} answers no ${part}: ${JSON.stringify(data)}`);
    await page.goto(own("test", `/${kind}`));
    await page.click(`main tbody a >> nth=0`);
    const stands = JSON.parse(await page.textContent("#stands"));
    check((await page.textContent("#movement .number .badge")) === data.status, `${path} answers ${data.status}, and the page has another word`);
    check(JSON.stringify(stands) === JSON.stringify(data), `${path} answers ${JSON.stringify(data)}, and the page says ${JSON.stringify(stands)}`);
  }
  await page.goto(at("/nothing").replace(new URL(OPERATOR_URL).origin, new URL(OWNER_URL).origin));
  await owner.seen("pages-nothing");
  await page.goto(new URL("/profile", OWNER_URL).href);
  await owner.seen("pages-profile");
  await page.click("main a[href='/profile/authenticator']");
  await page.waitForURL(/\/confirm/);
  await owner.fresh();
  await page.waitForSelector("[data-factor]");
  await owner.seen("pages-authenticator");

  // A payment that is paid is given back, a part of it.
  const link = await post(`${API_URL}/payments/create`, { merchant_id: MERCHANT, amount: 40000, payer_email: "payer@example.com", external_id: "payment-back" }, { Authorization: `Bearer ${TEST_KEY}` });
  await post(`${SANDBOX_URL}/pay`, { url: link.data.checkout_url });
  await until(async () => {
    await page.goto(own("test", "/payments"));
    await page.click(`main tbody a >> nth=0`);
    await page.waitForSelector("#movement");
    return page.isVisible("a[href*='/refund/']");
  }, "a paid payment can't be given back");
  await page.click("a[href*='/refund/']");
  await page.waitForSelector("[name=refund_id]", { state: "attached" });
  await owner.seen("pages-refund");
  await page.fill("[name=amount]", "1000");
  await page.fill("main [name=reason]", "One is sold out");
  await page.click("main form button");
  await page.waitForSelector("main .notice");
  await owner.seen("pages-refunded");
  await page.goto(own("test", "/refunds"));
  await page.click(`main tbody a >> nth=0`);
  await page.waitForSelector("#movement");
  await owner.seen("pages-refund-one");
  await page.goto(own("test", "/callbacks"));
  await owner.does(() => page.click("form[action$='/callbacks/secret'] [value=rotate]"), "#secret");
  await owner.seen("pages-callback-secret");
  await page.goto(own("test", "/callbacks"));
  await owner.seen("pages-callbacks-rotating");
  await page.goto(own("test", "/members"));
  await page.fill("form[action$='/members'] [name=email]", mail("viewer"));
  await page.click("form[action$='/members'] button");
  await page.waitForSelector(".notice");
  await owner.seen("pages-invited");

  // Somebody who has forgotten a password is mailed a link.
  const forgetful = await somebody("Forgetful");
  await forgetful.page.goto(new URL("/signin", page.url()).href);
  await forgetful.page.click("a[href='/forgot']");
  await forgetful.page.waitForSelector("form[action='/forgot']");
  await forgetful.seen("forgot");
  await forgetful.page.fill("[name=email]", mail("owner"));
  await forgetful.page.click("form[action='/forgot'] button");
  await forgetful.page.waitForSelector("main [role=status]:not(:has(#stale))");
  await forgetful.seen("forgot-asked");
  await forgetful.page.goto(await mailed("owner", "/reset/"));
  await forgetful.seen("reset");
  const colour = () => page.evaluate(() => getComputedStyle(document.querySelector(".modes [aria-current]")).backgroundColor);
  await page.goto(own("test", "/"));
  const test = await colour();
  await page.click(".modes a:not([aria-current])");
  await page.waitForSelector(".ribbon", { state: "detached" });
  check((await colour()) !== test, "live mode has the colour of test mode");
  await page.click("button[lang=id]");
  await page.waitForSelector("html[lang=id]");
  for (const name of oneIn(3, "owner", ["", "payments", "collections", "orders", "transfers", "requests", "callbacks", "numbers", "balance", "connections", "keys", "keys/new", "members", "audit"])) {
    await page.goto(own("live", `/${name}`));
    await owner.seen(`pages-id-live-${name.replaceAll("/", "-") || "overview"}`);
  }
  for (const kind of ["payments", "orders"]) await shown("live", kind, "id");
  await page.click("button.quiet[lang=en]");
  await page.context().clearCookies();
  await page.goto(new URL("/signin", OWNER_URL).href);
  await page.fill("[name=email]", mail("owner"));
  await page.fill("[name=password]", "not a sentence of mine");
  await page.fill("[name=code]", "000000");
  await page.click("main form button");
  await page.waitForSelector("#problem .warning");
  await owner.seen("pages-signin-refused");

  // The operators' console.
  const operator = await somebody("Operator");
  await operator.accept(OPERATOR_URL, "another sentence of words");
  const desk = operator.page;
  await desk.goto(at("/merchants/new"));
  await desk.waitForURL(/\/confirm/);
  await desk.fill("[name=code]", "000000");
  await desk.click("main form button");
  await desk.waitForSelector("#problem .warning");
  await operator.seen("pages-confirm-refused");
  await operator.fresh();
  await operator.seen("pages-new-merchant");
  await desk.fill("main [name=name]", "Toko Contoh");
  await desk.click("main form button");
  await desk.waitForSelector("#secret0");
  await operator.seen("pages-merchant-secrets");
  await desk.goto(at("/people"));
  await desk.click("summary >> text=New token");
  await desk.fill("form[action='/tokens'] [name=name]", "reports");
  await desk.click("form[action='/tokens'] button");
  await desk.waitForSelector("#secret0");
  await operator.seen("pages-token");
  await until(async () => {
    await desk.goto(at(`/merchants/${MERCHANT}/statement-lines`));
    return desk.isVisible("form[action$='/statement-lines']");
  }, "what was paid twice is on no page");
  await operator.seen("pages-statement-lines");
  for (const kind of ["payment", "order", "transfer", "collection"]) {
    await desk.goto(at(`/find?id=${kind}-live`));
    await desk.click(`h2 >> text=${kind}-live`);
    await desk.waitForURL(/\/movements\//);
    await operator.seen(`pages-operators-${kind}`);
  }
  for (const path of [`/merchants/${MERCHANT}/callbacks`, `/merchants/${MERCHANT}/figures?mode=test`, `/merchants/${MERCHANT}/movements?mode=test`, "/profile", "/nothing", "/people", `/merchants/${MERCHANT}`]) {
    await desk.goto(at(path));
    await operator.seen(`pages-operators${path.replace(MERCHANT, "one").replaceAll("/", "-")}`);
  }
  await desk.click("button[lang=id]");
  await desk.waitForSelector("html[lang=id]");
  for (const path of oneIn(3, "operator", ["/", "/merchants", `/merchants/${MERCHANT}`, "/waiting", "/traffic", "/policies", "/policies/numbers", "/providers", "/providers/wallet1", "/pauses", "/replicas", "/audit", "/people"])) {
    await desk.goto(at(path));
    await operator.seen(`pages-operators-id${path.replace(MERCHANT, "one").replaceAll("/", "-")}`);
  }
});
