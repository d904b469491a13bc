// An operator comes in by an invitation, makes a policy stricter with its impact in sight
// and rolls it back, limits a merchant, resolves an exception, and invites somebody whose
// role may do none of it.
import { card, check, mail, mailed, story, until } from "./people.mjs";

const { OPERATOR_URL, API_URL, SANDBOX_URL, MERCHANT, TEST_KEY } = process.env;
const at = (path) => new URL(OPERATOR_URL).origin + path;

// pay makes a payment and pays another amount, which waits for a person.
const pay = async (reference) => {
  const post = async (url, body) => (await fetch(url, { method: "POST", body: JSON.stringify(body) })).json();
  const wanted = { secret_key: TEST_KEY, merchant_id: MERCHANT, amount: 50000, payer_email: "payer@example.com", external_id: reference };
  const created = await post(`${API_URL}/payments/create`, wanted);
  check(created.success, `the payment is refused: ${JSON.stringify(created)}`);
  await post(`${SANDBOX_URL}/pay`, { url: created.data.checkout_url, amount: 40000 });
};

await story(async (somebody) => {
  const operator = await somebody("Operator");
  const { page } = operator;
  await operator.accept(OPERATOR_URL, "a sentence of five words");
  await pay("paid-less");

  // Change a number, look at the difference and the impact, activate, and roll back.
  await page.goto(at("/policies/numbers"));
  await operator.seen("operators-numbers");
  await page.fill("[name='/tiers/scale/rate_per_second']", "450");
  await page.fill("[name=message] >> nth=0", "Less for all");
  await page.click("text=Make a version >> nth=0");
  await page.waitForURL(/policies\/[0-9a-f]{64}$/);
  check((await page.locator(".diff del, .diff ins").allTextContents()).join() === '-      "rate_per_second": 500,,+      "rate_per_second": 450,', "the difference is another one");
  await operator.seen("operators-policy");
  const version = page.url();
  await page.click("text=Show the impact");
  await page.waitForSelector("svg.bar");
  await operator.seen("operators-impact");
  await page.goto(version);
  const activate = async () => {
    await page.fill("form[action$='/activate'] [name=reason]", "it is too much");
    await page.click("form[action$='/activate'] button");
  };
  await activate();
  await page.waitForURL(/confirm/);
  await operator.fresh();
  await activate();
  await page.waitForSelector("#activation .number >> text=in force");
  await operator.seen("operators-activation");
  await page.goto(at("/policies"));
  await page.click("summary >> text=Roll back");
  await page.fill("form[action$='/rollback'] [name=reason]", "it was not");
  await page.click("form[action$='/rollback'] button");
  await page.waitForSelector("#activation .number >> text=in force");
  await page.goto(version);
  check(await page.isVisible("h1 >> text=past"), "the version is in force after it was rolled back");

  // A number that means nothing is refused, with what was found.
  await page.goto(at("/policies/numbers"));
  await page.fill("[name='/tiers/scale/rate_per_second']", "0");
  await page.fill("[name=message] >> nth=0", "None for scale");
  await page.click("text=Make a version >> nth=0");
  await page.waitForSelector("h1 .badge.bad");
  check((await page.locator("form[action$='/activate']").count()) === 0, "a refused version can be activated");

  // Limit a merchant; a form that is refused keeps what was typed.
  await page.goto(at(`/merchants/${MERCHANT}`));
  await page.click("summary >> text=Set a limit");
  await page.fill("form[action$='/limits'] [name=name]", "payout:day");
  await page.fill("form[action$='/limits'] [name=amount]", "5.000.000");
  await page.fill("form[action$='/limits'] [name=reason]", "<script>alert(1)</script>");
  await page.click("form[action$='/limits'] button");
  await page.waitForSelector("#problem .warning");
  check((await page.inputValue("form[action$='/limits'] [name=amount]")) === "5.000.000", "what was typed is lost where it is refused");
  await page.fill("form[action$='/limits'] [name=amount]", "5000000");
  await page.click("form[action$='/limits'] button");
  await page.waitForSelector(".notice");
  check(await page.isVisible("td >> text=Rp5.000.000"), "the limit is not on the merchant's page");
  // Give it a label, and pause a connection of its.
  await page.click("summary >> text=Change a label");
  await page.fill("form[action$='/labels'] [name=name]", "segment");
  await page.fill("form[action$='/labels'] [name=value]", "travel");
  await page.fill("form[action$='/labels'] [name=reason]", "as they say");
  await page.click("form[action$='/labels'] button >> nth=0");
  await page.waitForSelector("dd >> text=travel");
  await page.fill("td form[action$='/pauses'] [name=reason] >> nth=0", "their account is closed");
  await page.click("td form[action$='/pauses'] button >> nth=0");
  await page.waitForSelector("td .badge >> text=paused");
  await page.click("td form[action$='/pauses']:has([value=end]) button >> nth=0");
  await page.waitForSelector("td .badge >> text=paused", { state: "detached" });
  await operator.seen("operators-merchant");

  // A large credit waits for somebody else.
  await page.goto(at(`/merchants/${MERCHANT}/money?mode=test`));
  await page.fill("main [name=amount]", "200000000");
  await page.fill("main [name=reference]", "a large one");
  await page.fill("main [name=reason]", "a deposit");
  await page.click("main form button");
  await page.waitForURL(/waiting/);
  check(await page.isVisible(`${card} >> text=You asked for it: another operator decides.`), "it does not say who decides");
  check((await page.locator(`${card} >> form[action='/waiting/adjustments']`).count()) === 0, "who asked for it may approve it");

  // What was paid wrongly waits; it is found by its reference, and resolved.
  const differs = `${card} >> text=amount_differs`;
  await until(async () => {
    await page.goto(at("/waiting"));
    return page.isVisible(differs);
  }, "what was paid wrongly does not wait");
  await operator.seen("operators-waiting");
  await page.goto(at("/find?id=paid-less"));
  await operator.seen("operators-find");
  await page.click("h2 >> text=paid-less");
  await page.waitForURL(/\/movements\//);
  await operator.seen("operators-movement");
  await page.goto(at("/waiting"));
  await page.fill(`${card} >> [name=resolution]`, "the payer has the rest back");
  await page.click(`${card} >> text=Resolve`);
  await page.waitForSelector(".notice");
  check(!(await page.isVisible(differs)), "a resolved exception still waits");

  for (const path of ["/", "/merchants", `/merchants/${MERCHANT}/money?mode=test`, `/merchants/${MERCHANT}/audit`, "/policies", "/providers", "/providers/payments", "/traffic",
    "/pauses", "/replicas", "/audit"]) {
    await page.goto(at(path));
    await operator.seen(`operators${path.replace(MERCHANT, "one").replaceAll(/[^a-z]+/g, "-")}`);
  }

  // Somebody else may look, and no more.
  await page.goto(at("/people"));
  await operator.seen("operators-people");
  await page.fill("form[action='/people'] [name=email]", mail("reader"));
  await page.click("form[action='/people'] button");
  const link = await mailed("reader", "/invitations/");
  const reader = await somebody("Reader", "id-ID");
  await reader.accept(link, "another sentence of words");
  await reader.page.goto(at(`/merchants/${MERCHANT}`));
  await reader.seen("operators-reader-merchant");
  await reader.does(async () => {
    if (!(await reader.page.isVisible("form[action$='/suspend']"))) await reader.page.click("summary >> text=Tangguhkan");
    await reader.page.fill("form[action$='/suspend'] [name=reason]", "because");
    await reader.page.click("form[action$='/suspend'] button");
  }, "#problem .warning");
  check((await reader.page.textContent("#problem")).includes("memiliki peran read"), "somebody without the role is not told so");
  await reader.page.goto(at("/people"));
  check((await reader.page.locator("form[action^='/people']").count()) === 0, "somebody without the role is offered to invite others");
});
