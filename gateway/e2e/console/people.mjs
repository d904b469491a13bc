// What both consoles' stories need: somebody who signs in, and pages that are judged on
// the way. A story imports it beside itself.
import { createHmac } from "node:crypto";
import { findings, launch, screenshot, views, viewsOf } from "gerbang-browser";

const { STORY, MERCHANT, SANDBOX_URL } = process.env;

// mail is the address of somebody in this story: all stories are played at one gateway.
export const mail = (who) => `${who}-${STORY}@gerbang.test`;

// card is a part of the operators' page of what waits that is about this story's merchant.
export const card = `section.card:has(a[href="/merchants/${MERCHANT}"])`;

// patience bounds every wait: it only ends a story that hangs.
const patience = 120_000;

// until tries again, twice a second, until it is true.
export const until = async (met, what) => {
  for (const end = Date.now() + patience; !(await met());) {
    if (Date.now() > end) throw new Error(typeof what === "function" ? await what() : what);
    await new Promise((next) => setTimeout(next, 500));
  }
};

// admitted sends a form with a password, and tells whether it was looked at: few are at a time, and the people of all
// stories come at once.
export const admitted = async (page, send) => {
  const answered = page.waitForResponse((answer) => answer.request().method() === "POST");
  await send();
  const answer = await answered;
  const right = answer.status() < 400;
  const busy = !right && (await answer.text()).includes("Many people sign in at this moment");
  check(right || busy, `${answer.url()} is answered ${answer.status()}: ${await page.textContent("main")}`);
  return right;
};

// step is the number of this moment's time step of codes.
const step = () => Math.floor(Date.now() / 30000);

// codeOf is a factor's code in a time step.
const codeOf = (secret, at) => {
  let bits = "";
  for (const letter of secret) bits += "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0");
  const key = Buffer.from(bits.match(/.{8}/g).map((byte) => parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(at));
  const digest = createHmac("sha1", key).update(counter).digest();
  const offset = digest[19] & 15;
  return String((digest.readUInt32BE(offset) & 0x7fffffff) % 1000000).padStart(6, "0");
};

// judged are the pages that were judged.
const judged = new Set();

export class Person {
  constructor(page, name, locale) {
    Object.assign(this, { page, name, locale, used: 0, problems: [] });
    page.on("console", (m) => m.type() === "error" && !/status of 4\d\d/.test(m.text()) && this.problems.push(`${page.url()}: ${m.text()}`));
    page.on("pageerror", (error) => this.problems.push(`${page.url()}: ${error}`));
    page.on("dialog", (dialog) => dialog.accept());
  }

  // code is one that was not used yet: each counts once, and the next one counts already.
  async code() {
    await until(() => this.used <= step(), "the next code never counts");
    this.used = Math.max(step(), this.used + 1);
    return codeOf(this.secret, this.used);
  }

  async accept(url, password) {
    await until(async () => {
      await this.page.goto(url);
      await this.seen("invitation");
      this.secret = await this.page.locator("[data-factor]").textContent();
      await this.page.fill("[name=name]", this.name);
      await this.page.fill("[name=password]", password);
      await this.page.fill("[name=code]", await this.code());
      return admitted(this.page, () => this.page.click("main form button"));
    }, `${this.name} can't come in`);
    await this.page.waitForSelector(".codes");
    await this.seen("codes");
    await this.page.click("main form button");
    await this.page.waitForSelector("nav.side");
  }

  // fresh gives a code where a page asks for one.
  async fresh() {
    await this.page.waitForSelector("h1");
    if (!this.page.url().includes("/confirm")) return;
    await this.seen("confirm");
    await this.page.fill("[name=code]", await this.code());
    await Promise.all([this.page.waitForURL((url) => !url.pathname.startsWith("/confirm")), this.page.click("main form button")]);
  }

  // does sends a form, and sends it again where it needs a fresh code first. The form is
  // done once the page shows what is told.
  async does(send, told) {
    await send();
    const asked = this.page.waitForURL((url) => url.pathname === "/confirm").then(() => true);
    const done = this.page.waitForSelector(told).then(() => false);
    asked.catch(() => {}), done.catch(() => {}); // the other one is never met
    if (!(await Promise.race([asked, done]))) return false;
    await this.fresh();
    await send();
    await this.page.waitForSelector(told);
    return true;
  }

  // seen judges a page at the story's first visit in a language, in its views. One behind another's may be drawn no more, and what is not drawn can't be clicked.
  async seen(name) {
    if (judged.has(this.locale + name)) return;
    judged.add(this.locale + name);
    await this.page.bringToFront();
    for (const { name: view, viewport, colorScheme } of viewsOf(name)) {
      await this.show({ viewport, colorScheme });
      for (const found of await findings(this.page)) this.problems.push(`${name}, ${view}: ${found}`);
      const wide = await this.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (wide > 0) this.problems.push(`${name}, ${view}: is ${wide} px wider than the screen`);
      await screenshot(this.page, `${name}-${view}`);
    }
    await this.show(views.at(-1)); // in which the story goes on
  }

  async show({ viewport, colorScheme }) {
    await this.page.setViewportSize(viewport);
    await this.page.emulateMedia({ colorScheme });
  }
}

// mailed is the link of the last mail to somebody, which the mail server of gerbang dev has caught.
export const mailed = async (who, path) => {
  let link;
  await until(async () => {
    const mails = await (await fetch(`${SANDBOX_URL}/mails.json`)).json();
    link = mails.find((m) => m.to.includes(mail(who)) && m.text.includes(path))?.text.match(/^https?:\/\/\S+$/m)[0];
    return link;
  }, `no mail with ${path} comes to ${who}`);
  return link;
};

// renewed is the next answer that a part of a page gets which renews itself.
export const renewed = (page) => page.waitForResponse((answer) => answer.url() === page.url() && answer.request().headers()["hx-boosted"] === undefined);

// check ends the story where something is not as it should be.
export const check = (right, text) => {
  if (!right) throw new Error(text);
};

// story runs with a browser, and prints what was wrong with the pages on the way.
export const story = async (play) => {
  const browser = await launch();
  try {
    const people = [];
    const somebody = async (name, locale = "en-US") => {
      const context = await browser.newContext({ locale });
      context.setDefaultTimeout(patience);
      const person = new Person(await context.newPage(), name, locale);
      people.push(person);
      return person;
    };
    await play(somebody);
    for (const person of people) person.problems.forEach((problem) => console.log(problem));
  } finally {
    await browser.close();
  }
};
