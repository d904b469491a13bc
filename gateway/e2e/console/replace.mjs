// An operator replaces a provider while merchants use it: confirms two versions that
// another operator approved, puts one in force after the other, and rolls back. No call
// fails.
import { check, mail, story, until } from "./people.mjs";

const { OPERATOR_URL, API_URL, MERCHANT, KEY } = process.env;
const at = (path) => new URL(OPERATOR_URL).origin + path;

await story(async (somebody) => {
  const operator = await somebody("Operator");
  const { page } = operator;

  // Merchants create payments all the while.
  let calling = true, calls = 0;
  const failed = [];
  const traffic = (async () => {
    while (calling) {
      const answer = await fetch(`${API_URL}/payments/create`, {
        method: "POST", headers: { Authorization: `Bearer ${KEY}`, "Content-Type": "application/json" },
        body: JSON.stringify({ merchant_id: MERCHANT, amount: 100000 + ++calls, payer_email: "payer@example.com", external_id: `call-${calls}` }),
      });
      if (answer.status !== 200) failed.push(await answer.text());
      await new Promise((next) => setTimeout(next, 100)); // below the rate
    }
  })();

  // runs opens the provider's page until every replica runs a version, under calls.
  const runs = async (version) => {
    const fact = `dl.facts dd:text-is("${version}")`;
    await until(async () => {
      await page.goto(at("/providers/payments"));
      return (await page.isVisible(fact)) && (await page.locator("h1 .badge.good").count()) === 1 && (await page.locator("text=another version").count()) === 0;
    }, async () => `${version} does not run: ${await page.textContent("main")}`);
    const before = calls;
    await until(() => calls >= before + 10, "no more calls are made");
  };

  await operator.accept(OPERATOR_URL, "a sentence of five words");
  await runs("1.0.0");
  check((await page.locator("form[action$='/activate'].inline").count()) === 0, "a version of one operator's word can be put in force");
  await operator.seen("replace-approved");

  // Another operator's approvals are confirmed with a fresh code.
  await page.goto(at("/waiting"));
  await operator.seen("replace-waiting");
  const confirms = (version) => page.click(`section:has(h4:has-text("${version}")) >> form[action='/waiting/approvals'] >> button`);
  check(await operator.does(() => confirms("1.0.1"), ".notice"), "a second operator's word needs no fresh code");
  await operator.does(() => confirms("1.0.2"), "main:not(:has(form[action='/waiting/approvals']))");
  await page.goto(at("/providers"));
  await operator.seen("replace-providers");

  // One version after the other, and back.
  const activates = (version) => page.click(`tr:has(td:has-text("${version} ")) >> form[action$='/activate'] >> button`);
  for (const version of ["1.0.1", "1.0.2"]) {
    await page.goto(at("/providers/payments"));
    await operator.does(() => activates(version), ".notice");
    await runs(version);
  }
  await operator.seen("replace-replaced");
  await operator.does(() => page.click("form[action$='/rollback'] button"), ".notice");
  await runs("1.0.1");
  await operator.seen("replace-rolled-back");

  calling = false;
  await traffic;
  check(failed.length === 0, `${failed.length} of ${calls} calls failed: ${failed.slice(0, 5).join(" ")}`);

  await page.goto(at("/audit"));
  await operator.seen("replace-audit");
  for (const action of ["plugin.confirm", "plugin.activate", "plugin.rollback"]) {
    check(await page.isVisible(`tr:has-text("${action}"):has-text("${mail("operator")}")`), `the audit has no ${action}: ${await page.textContent("main")}`);
  }
});
