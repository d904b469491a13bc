// A merchant's first hour on an empty gateway, without a shell on its machine: an operator makes the merchant and invites its
// owner; the owner comes in from the mail, makes a key, pastes the lines, pays in the control room, and sees the callback
// verified. Prints nothing, where all is as it should be.
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { check, mail, story, until } from "./people.mjs";

const { OPERATOR_URL, SMTP_PORT, RECEIVER } = process.env;

// mails are what a mail server gets: it takes everything. Their texts are quoted-printable.
const mails = [];
createServer((socket) => {
  let text = "", content = false;
  socket.write("220 gerbang.test\r\n");
  socket.on("data", (data) => {
    text += data;
    for (let end; (end = text.indexOf(content ? "\r\n.\r\n" : "\r\n")) >= 0; ) {
      const line = text.slice(0, end);
      text = text.slice(end + (content ? 5 : 2));
      if (content) mails.push(line.replace(/=\r\n/g, "").replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16))));
      const begins = !content && /^DATA/i.test(line);
      socket.write(begins ? "354 go on\r\n" : /^QUIT/i.test(line) ? "221 bye\r\n" : "250 taken\r\n");
      content = begins;
    }
  });
  socket.on("error", () => {});
}).listen(Number(SMTP_PORT), "127.0.0.1");

// pasted runs lines in a shell, as they stand on the page but for the secrets.
const pasted = (lines, secrets, env = {}) => {
  for (const [shown, secret] of Object.entries(secrets)) {
    check(lines.includes(shown), `the lines have no ${shown}: ${lines}`);
    lines = lines.replace(shown, secret);
  }
  const shell = spawn("sh", ["-c", lines], { env: { ...process.env, ...env }, cwd: process.env.DIR, detached: true });
  let out = "";
  shell.stdout.on("data", (data) => { out += data; });
  shell.stderr.on("data", (data) => { out += data; });
  return { shell, ended: new Promise((ended) => shell.on("close", () => ended(out))), end: () => process.kill(-shell.pid) };
};

await story(async (somebody) => {
  const operator = await somebody("Operator");
  await operator.accept(OPERATOR_URL, "a sentence of five words");
  const desk = operator.page;
  await desk.goto(`${new URL(OPERATOR_URL).origin}/merchants/new`);
  await operator.fresh();
  await desk.fill("[name=name]", "Toko Pertama");
  await desk.click("main form button");
  await desk.waitForSelector("main code");
  await desk.goto(`${new URL(OPERATOR_URL).origin}/merchants`);
  await desk.click("text=Toko Pertama");
  const invite = async () => {
    await desk.locator("details:has(form[action$='/invitations'])").evaluate((one) => { one.open = true; });
    await desk.fill("form[action$='/invitations'] [name=email]", mail("owner"));
    await desk.click("form[action$='/invitations'] button");
  };
  await operator.does(invite, `main >> text=${mail("owner")}`);

  let link;
  await until(() => (link = mails.filter((m) => m.includes(mail("owner"))).join().match(/https?:\/\/\S+\/invitations\/[\w-]+/)?.[0]), "the invitation is not mailed");
  const owner = await somebody("Owner");
  const { page } = owner;
  await owner.accept(link, "another sentence of words");
  const [, merchant] = new URL(page.url()).pathname.split("/");
  const at = (path) => `${new URL(link).origin}/${merchant}/test${path}`;
  const done = async () => page.locator(".steps li:has(.badge.good)").count();
  await page.goto(at("/"));
  await owner.seen("first-steps");
  check((await done()) === 0, "a step is done before the first");

  await Promise.all([page.waitForURL(/\/(confirm|keys\/new)/), page.click("text=Make a test key")]);
  await owner.fresh();
  await page.waitForSelector("[name=ips]");
  await page.click("main form button");
  const key = await page.locator("#secret").textContent();

  await page.goto(at("/"));
  await page.click(".steps >> text=Node");
  const lines = async (step) => (await page.locator(`#lines-${step}`).textContent());
  const pay = await pasted(await lines(1), { "sk_test_…": key }).ended;
  const made = JSON.parse(pay.slice(pay.indexOf("{")));
  check(made.success, `the lines print ${pay}`);
  await page.goto(made.data.checkout_url);
  await page.click("form.play button >> nth=0");
  await page.waitForSelector("#movement .number .badge.good");

  await page.goto(at("/callbacks"));
  await owner.does(() => page.click("form[action$='/callbacks/secret'] button"), "#secret");
  const secret = await page.locator("#secret").textContent();
  await page.goto(at("/?code=Node"));
  const receiver = pasted(await lines(2), { "whsec_…": secret }, { PORT: new URL(RECEIVER).port });
  try {
    await page.goto(at("/callbacks"));
    const set = async () => {
      await page.fill("form[action$='/callbacks/url'] [name=url]", RECEIVER);
      await page.click("form[action$='/callbacks/url'] button");
    };
    await owner.does(set, ".notice");
    await until(() => fetch(RECEIVER, { method: "POST" }).then(() => true, () => false), "the receiver does not start");
    await page.goto(at("/"));
    await page.click("text=Ask it whether it verifies");
    await page.waitForSelector("text=Your server takes what the gateway signed");
    await owner.seen("verified");
  } finally {
    receiver.end();
  }
  await page.goto(at("/"));
  check((await done()) === 3, `${await done()} steps are done: ${await page.textContent(".steps")}`);
  await owner.seen("first-steps-done");
});
process.exit(); // the mail server would go on
