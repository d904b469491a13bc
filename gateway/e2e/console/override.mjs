// Two operators settle a transfer of which its provider never tells the end: the first
// one says how it ended and can't confirm it alone, the second one confirms it with a
// fresh code, and the merchant sees the end. A large credit takes the same two.
import { card, check, mail, mailed, story, until } from "./people.mjs";

const { OPERATOR_URL, OWNER_URL, API_URL, MERCHANT, TEST_KEY } = process.env;
const at = (path) => new URL(OPERATOR_URL).origin + path;
const own = (path) => `${new URL(OWNER_URL).origin}/${MERCHANT}/test${path}`;
const alwaysWrong = "087800001252"; // the simulator's plan: 202, and a wrong amount for ever

await story(async (somebody) => {
  const answer = await fetch(`${API_URL}/wallet1/transfer/wallet`, {
    method: "POST", headers: { Authorization: `Bearer ${TEST_KEY}`, "Content-Type": "application/json" },
    body: JSON.stringify({ amount: 31000, phone: alwaysWrong, external_id: "unknown-1" }),
  });
  const sent = await answer.json();
  check(sent.success && sent.data.status === "Pending", `the transfer is answered with ${JSON.stringify(sent)}`);

  // The first operator invites the second one, who signs in by a factor of their own.
  const first = await somebody("First");
  await first.accept(OPERATOR_URL, "a sentence of five words");
  await first.page.goto(at("/people"));
  await first.does(async () => {
    await first.page.fill("form[action='/people'] [name=email]", mail("second"));
    await first.page.selectOption("form[action='/people'] [name=role]", "finance");
    await first.page.click("form[action='/people'] button");
  }, ".notice");
  const second = await somebody("Second");
  await second.accept(await mailed("second", "/invitations/"), "another sentence of words");

  // Its merchant sees that it is open.
  const owner = await somebody("Owner");
  await owner.accept(OWNER_URL, "a third sentence of words");
  await owner.page.goto(own("/transfers"));
  await owner.page.click("text=unknown-1");
  await owner.page.waitForSelector("#movement .number .badge.wait");
  await owner.seen("override-owner-open");

  // The first one says how it ended. It is open as before, and waits for somebody else.
  await until(async () => {
    await first.page.goto(at("/waiting"));
    return first.page.isVisible(`${card} >> h3:has-text('amount_differs')`);
  }, () => first.page.textContent("main"));
  await first.page.goto(at("/find?id=unknown-1"));
  await first.page.click("h2 >> text=unknown-1");
  await first.page.waitForURL(/\/movements\//);
  const movement = first.page.url();
  const says = async (as, reason) => {
    if (!(await first.page.isVisible("form[action$='/override'] select"))) await first.page.click("summary >> text=Say how it ended");
    await first.page.selectOption("form[action$='/override'] [name=as]", as);
    await first.page.fill("form[action$='/override'] [name=reason]", reason);
    await first.page.click("form[action$='/override'] button");
  };
  await first.does(() => says("success", "seen in the portal"), ".notice");
  check((await first.page.textContent(".notice")) === "It waits until another operator says the same.", "one operator settles a transfer");
  check(await first.page.isVisible(".number .badge.wait"), "the transfer has ended by one operator's word");
  await first.seen("override-proposed");
  await first.page.goto(at("/waiting"));
  check(await first.page.isVisible("section:has-text('unknown-1') >> text=You asked for it: another operator decides."), "it does not say who decides");
  check((await first.page.locator("form[action='/waiting/overrides']").count()) === 0, "who said it may confirm it");
  await first.seen("override-waiting-own");
  await first.page.goto(movement);
  await says("success", "seen in the portal again"); // by the other form
  await first.page.waitForSelector(".notice");
  check(await first.page.isVisible(".number .badge.wait"), "the same operator's second word counts as another's");

  // The second one may not say otherwise, and confirms it with a fresh code.
  const confirms = async () => {
    await second.page.fill("form[action='/waiting/overrides'] [name=reason]", "the receiver has it");
    await second.page.click("form[action='/waiting/overrides'] button");
  };
  await second.page.goto(at("/waiting"));
  await second.seen("override-waiting");
  check(await second.does(confirms, ".notice"), "the second word needs no fresh code");
  check((await second.page.textContent(".notice")) === "The outcome is decided.", "the second word decides nothing");
  check((await second.page.locator("section:has-text('unknown-1')").count()) === 0, "what is decided still waits");
  await second.page.goto(movement);
  check(await second.page.isVisible(".number .badge.good"), "the transfer has not succeeded");
  await second.seen("override-decided");

  // The merchant's page, which was left open, shows the end.
  await owner.page.waitForSelector("#movement .number .badge.good");
  await owner.page.reload();
  await owner.seen("override-owner-done");
  check(!/gerbang\.test/.test(await owner.page.textContent("main")), "the merchant reads who the operators are");

  // A large credit: asked for by one, approved by the other.
  await first.page.goto(at(`/merchants/${MERCHANT}/money?mode=test`));
  await first.does(async () => {
    await first.page.fill("main [name=amount]", "200000000");
    await first.page.fill("main [name=reference]", "a large one");
    await first.page.fill("main [name=reason]", "a deposit");
    await first.page.click("main form button");
  }, "#adjustments");
  await second.page.goto(at("/waiting"));
  await second.seen("override-waiting-credit");
  await second.does(() => second.page.click(`${card} >> form[action='/waiting/adjustments'] >> [value=approve]`), ".notice");
  await owner.page.goto(own("/balance"));
  check((await owner.page.textContent("main")).includes("Rp200.000.000"), "what two operators credited is not the merchant's");
  await owner.seen("override-owner-balance");

  // The audit names both.
  await first.page.goto(at(`/merchants/${MERCHANT}/audit`));
  await first.seen("override-audit");
  for (const [action, who] of [["movement.propose", mail("operator")], ["movement.confirm", mail("second")]]) {
    check(await first.page.isVisible(`tr:has-text("${action}"):has-text("${who}")`), `the audit has no ${action} of ${who}: ${await first.page.textContent("main")}`);
  }
});
