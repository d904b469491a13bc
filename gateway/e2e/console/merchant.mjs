// A merchant's owner comes in by an invitation, issues a key and uses it, follows a payment
// until it is paid, sends its callback again, rotates the key under traffic, and invites
// somebody who may only look.
import { admitted, check, mail, mailed, renewed, story, until } from "./people.mjs";

const { OWNER_URL, API_URL, SANDBOX_URL, CONSOLE_URL, ADMIN_TOKEN, MERCHANT, OTHER } = process.env;
const at = (path) => `${new URL(OWNER_URL).origin}/${MERCHANT}/test${path}`;

const call = async (path, key, body, headers = {}) => {
  const answer = await fetch(API_URL + path, {
    method: "POST", headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json", ...headers }, body: JSON.stringify(body),
  });
  return { status: answer.status, body: await answer.json() };
};

// pressed clicks slowly, on a page that renews itself meanwhile.
const pressed = async (page, button) => {
  await page.hover(button);
  await page.mouse.down();
  await renewed(page);
  await renewed(page); // so that the first one is on the page, or never will be
  await page.mouse.up();
};

await story(async (somebody) => {
  const owner = await somebody("Owner");
  const { page } = owner;
  await owner.accept(OWNER_URL, "a sentence of five words");

  // Issue a key and use it.
  await page.goto(at("/keys"));
  await owner.seen("keys");
  await owner.does(() => page.click("text=New key"), "[name=ips]");
  await owner.seen("key-new");
  await page.fill("[name=ips]", "nowhere");
  await page.click("main form button");
  await page.waitForSelector("#problem .warning");
  check((await page.inputValue("[name=ips]")) === "nowhere", "what was typed is lost where it is refused");
  await page.fill("[name=ips]", "");
  await page.click("main form button");
  const key = await page.locator("#secret").textContent();
  await owner.seen("key-shown");
  check((await call("/balance", key, {})).status === 200, "the new key is refused");

  // Follow a payment, whose description is a script, until it is paid.
  const wanted = {
    merchant_id: MERCHANT, amount: 25000, payer_email: "payer@example.com", external_id: "followed-1", description: "<script>alert(1)</script>",
  };
  const created = await call("/payments/create", key, wanted, { "X-Callback-URL": `${SANDBOX_URL}/inbox` });
  check(created.status === 200, `the payment is refused: ${JSON.stringify(created.body)}`);
  await page.goto(at("/payments"));
  await owner.seen("payments");
  await page.click("text=followed-1");
  await page.waitForSelector("#movement[hx-get]");
  await owner.seen("payment-open");
  await fetch(`${SANDBOX_URL}/pay`, { method: "POST", body: JSON.stringify({ url: created.body.data.checkout_url }) });
  await page.waitForSelector("#movement .number .badge.good");
  await page.waitForSelector("#movement a[href*='/callbacks/']");
  await page.reload();
  await owner.seen("payment-paid");

  // Each of the others is paid by the page's button: a link, a raw code and a sale.
  for (const [kind, path, extra] of [
    ["payments", "/payments/create", { external_id: "button-link" }],
    ["payments", "/payments/create", { external_id: "button-qris", type: "qris" }],
    ["collections", "/wallet2/create", { external_id: "button-sale" }],
  ]) {
    const made = await call(path, key, { merchant_id: MERCHANT, amount: 18000, payer_email: "payer@example.com", ...extra });
    check(made.status === 200, `${path} is refused: ${JSON.stringify(made.body)}`);
    await page.goto(at(`/${kind}`));
    await page.click(`text=${extra.external_id}`);
    await page.waitForSelector("text=Pay this test payment");
    await owner.seen(`pay-${extra.external_id}`);
    await pressed(page, "text=Pay this test payment");
    await page.waitForSelector(".notice");
    await page.waitForSelector("#movement .number .badge.good");
    check((await page.locator("text=Pay this test payment").count()) === 0, `${extra.external_id} can be paid twice`);
  }

  // One that is paid elsewhere while its form is under way can't be paid again; the page says so, and goes on saying it.
  const meanwhile = { merchant_id: MERCHANT, amount: 18000, payer_email: "payer@example.com", external_id: "meanwhile" };
  const { body: open } = await call("/payments/create", key, meanwhile);
  await page.goto(at("/payments"));
  await page.click("text=meanwhile");
  let send;
  await page.route("**/play", async (route) => {
    await new Promise((resolve) => { send = resolve; });
    await route.continue();
  });
  await page.click("text=Pay this test payment");
  await fetch(`${SANDBOX_URL}/pay`, { method: "POST", body: JSON.stringify({ url: open.data.checkout_url }) });
  await until(async () => (await call("/payments/status", key, { external_id: "meanwhile" })).body.data.status !== open.data.status, "it is not paid");
  await renewed(page);
  await renewed(page);
  send();
  await page.waitForSelector("#problem .warning");
  await page.waitForSelector("#movement .number .badge.good");
  check((await page.textContent("#problem")).includes("as it stands"), "what was wrong is told no longer");
  await owner.seen("paid-meanwhile");
  await page.goto(at("/payments"));
  await page.click("text=followed-1");

  // Send its callback again.
  await page.click("#movement a[href*='/callbacks/'] >> nth=-1");
  await page.waitForSelector("text=Send again");
  const reloaded = async (shown) => (await shown()) || (await page.reload(), false);
  await until(() => reloaded(async () => (await page.locator("h1 .badge.good").count()) > 0), "the callback is not delivered");
  const before = await page.locator("tbody tr").count();
  await page.click("text=Send again");
  await page.waitForSelector(".notice");
  await until(() => reloaded(async () => (await page.locator("tbody tr").count()) > before), "the callback is not sent again");
  await owner.seen("callback");

  // Rotate the key under traffic: no call is refused.
  let calling = true, refused = 0, calls = 0;
  const traffic = (async () => {
    while (calling) {
      const { status } = await call("/payments/status", key, { external_id: "followed-1" });
      calls++;
      if (status !== 200 && status !== 429) refused++;
      await page.waitForTimeout(200); // below the rate
    }
  })();
  const id = key.split("_")[2];
  await page.goto(at(`/keys/${id}/rotate`));
  await owner.fresh();
  await owner.seen("key-rotate");
  await page.click("main form button");
  const next = await page.locator("#secret").textContent();
  check((await call("/balance", next, {})).status === 200, "the rotated key is refused");
  const soon = calls + 2;
  await until(() => calls >= soon, "no call is answered after the key was rotated");
  calling = false;
  await traffic;
  check(calls > 1 && refused === 0, `${refused} of ${calls} calls were refused while the key was rotated`);

  // Calls beyond the rate are refused, and the owner reads by what: by the decision's id and
  // by the request's, which say nothing to another merchant. An operator slows the merchant
  // down first: how fast a machine calls is not what is tried here.
  const slowed = await fetch(`${CONSOLE_URL}/admin/merchants/${MERCHANT}/limits`, {
    method: "POST", headers: { Authorization: `Bearer ${ADMIN_TOKEN}`, "Content-Type": "application/json" },
    body: JSON.stringify({ limits: [{ name: "default", rate_per_second: 1, burst: 1 }], reason: "a story of refused calls" }),
  });
  check(slowed.status === 200, `the merchant is not slowed down: ${await slowed.text()}`);
  let denied;
  await until(async () => {
    const answers = await Promise.all(Array.from({ length: 30 }, () => fetch(`${API_URL}/balance`, {
      method: "POST", headers: { Authorization: `Bearer ${next}`, "Content-Type": "application/json" }, body: "{}",
    })));
    denied = answers.find((answer) => answer.status === 429);
    return denied;
  }, "no call is beyond the rate");
  const decision = denied.headers.get("x-svc-decision-id");
  const { request_id: request } = await denied.json();
  await page.goto(at("/requests"));
  for (const id of [decision, request]) {
    await until(async () => { // the log is written every second
      await page.goto(at("/requests"));
      await page.fill("main [name=id]", id);
      await page.click("main form button");
      await page.waitForURL((url) => url.searchParams.get("id") === id);
      return (await page.locator("#calls tbody a").count()) === 1;
    }, () => `${id} of a refused call is not found: ${page.url()}`);
  }
  await page.click("#calls tbody a");
  await page.waitForURL((url) => url.pathname.endsWith(`/requests/${request}`));
  const told = await page.textContent("main");
  for (const part of ["rate default", "a second", "Used", "Room again"]) check(told.includes(part), `a refused call is explained without ${part}: ${told}`);
  await owner.seen("request");
  check((await page.goto(at(`/requests/${decision}`).replace("/test/", "/live/"))).status() === 404, "a decision is one of the other mode's, too");
  const listed = async (text) => (await page.textContent("main")).includes(text) || (await page.goto(at("/requests")), false);
  await until(() => listed("room again after"), "no refusal for the rate is listed");
  await owner.seen("requests-refused");

  // A call that does not fit its schema is the newest of the list, with what was wrong.
  const wrong = await call("/payments/create", key, { merchant_id: MERCHANT, payer_email: "payer@example.com", external_id: "no-amount" });
  check(wrong.status === 400 || wrong.status === 429, `a payment without an amount is answered ${wrong.status}`);
  const row = page.locator("#calls tbody tr", { has: page.locator(`a[href$="${wrong.body.request_id}"]`) });
  await until(async () => (await row.count()) === 1 || (await page.goto(at("/requests")), false), "a call that does not fit its schema is not listed");
  const shown = await row.textContent();
  check(shown.includes(wrong.body.error_code) && shown.includes(wrong.body.message), `the call is listed as ${shown}`);
  await owner.seen("requests-list");
  await row.locator("a").click();
  await page.waitForURL(/\/requests\/.+/);
  await owner.seen("request-of-the-list");

  for (const name of ["", "collections", "orders", "transfers", "requests", "callbacks", "balance", "connections", "connections/payments", "members", "audit"]) {
    await page.goto(at(`/${name}`));
    check((await page.locator("#problem + .warning.pre, h1 + .warning").count()) === 0, `the page ${name} does not work: ${await page.locator("main").textContent()}`);
    await owner.seen(name.replaceAll("/", "-") || "overview");
  }

  // A viewer sees movements, no keys, and no other merchant's page.
  await page.goto(at("/members"));
  await page.fill("form[action$='/members'] [name=email]", mail("viewer"));
  await page.selectOption("form[action$='/members'] [name=role]", "viewer");
  await page.click("text=Invite >> nth=-1");
  const link = await mailed("viewer", "/invitations/");
  const viewer = await somebody("Viewer", "id-ID");
  await viewer.accept(link, "another sentence of words");
  await viewer.page.goto(at("/payments"));
  await viewer.seen("payments-id");
  check((await viewer.page.textContent("h1")) === "Pembayaran", "the browser's language is not spoken");
  for (const forbidden of [at("/keys"), at("/members"), at("/balance"), at("/payments").replace(MERCHANT, OTHER)]) {
    check((await viewer.page.goto(forbidden)).status() === 404, `a viewer may open ${forbidden}`);
  }
  await page.goto(link);
  check((await page.textContent("main")).includes("used or over"), "a used invitation is good again");

  // Keyboard only: the first stop skips to the content.
  await page.goto(at("/"));
  await page.keyboard.press("Tab");
  check((await page.evaluate(() => document.activeElement.className)) === "skip", "the first stop does not skip to the content");

  // Signed out, every page asks to sign in; a wrong code and a right one.
  await page.context().clearCookies();
  const signsIn = async (code) => {
    await page.goto(at("/payments"));
    check(page.url().includes("/signin?next="), "a page is shown to nobody");
    await owner.seen("signin");
    await page.fill("[name=email]", mail("owner"));
    await page.fill("[name=password]", "a sentence of five words");
    await page.fill("[name=code]", code);
  };
  await signsIn("000000");
  await page.click("main form button");
  await page.waitForSelector("#problem .warning");
  await page.fill("[name=code]", await owner.code());
  for (let send = () => page.click("main form button"); !(await admitted(page, send));) await signsIn(await owner.code());
  await page.waitForURL(at("/payments"));
});
