"use strict";
(() => {
  let page = document.querySelector("[data-checkout]");
  if (!page) return;
  const interval = 2000, slowest = 15000, returnAfter = 10000;
  const clockOffset = Date.parse(page.dataset.now) - Date.now();
  const ends = Date.parse(page.dataset.ends);
  let wait = interval;

  const final = () => page.dataset.checkout !== "PENDING";

  const offerPrint = () => {
    const button = page.querySelector("[data-print]");
    if (!button) return;
    button.hidden = false;
    button.addEventListener("click", () => print());
  };

  // Who has just paid is taken back; who opens the page later came to read it.
  const goBack = () => {
    const back = page.querySelector("[data-back]");
    if (!back) return;
    back.querySelector("[data-returning]").hidden = false;
    const timer = setTimeout(() => location.assign(back.querySelector("a").href), returnAfter);
    addEventListener("beforeprint", () => clearTimeout(timer));
  };

  // What the page says after the end is the server's to write. Whatever could still be
  // paid with goes with the old page.
  const end = async () => {
    const answer = await fetch(location.href, { cache: "no-store", credentials: "omit" });
    if (!answer.ok) throw new Error(String(answer.status));
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = next.querySelector("[data-checkout]");
    if (!main || final()) return;
    page.replaceWith(main);
    page = main;
    if (!final()) return;
    document.title = next.title;
    for (const trace of document.querySelectorAll("link[rel=payment], meta[name=qr-string]")) trace.remove();
    page.querySelector("[data-end] h2").focus();
    offerPrint();
    goBack();
  };

  const two = (n) => String(n).padStart(2, "0");

  const tick = () => {
    const left = page.querySelector("[data-left]");
    if (final() || !left) return;
    const seconds = Math.max(0, Math.floor((ends - Date.now() - clockOffset) / 1000));
    const hours = Math.floor(seconds / 3600), minutes = Math.floor(seconds / 60) % 60;
    left.classList.toggle("soon", seconds < 60);
    left.textContent = hours >= 48 ? "" : (hours ? hours + ":" + two(minutes) : minutes) + ":" + two(seconds % 60);
    setTimeout(tick, 1000);
  };

  const ask = async () => {
    const answer = await fetch(location.pathname + "/state", { cache: "no-store", credentials: "omit" });
    if (!answer.ok) throw new Error(String(answer.status));
    const { status } = (await answer.json()).data;
    if (status !== page.dataset.checkout) await end();
  };

  const poll = async () => {
    try {
      await ask();
      wait = interval;
    } catch {
      wait = Math.min(wait * 2, slowest);
    }
    if (!final()) setTimeout(poll, wait);
  };

  if (final()) return offerPrint();
  if (ends) tick();
  setTimeout(poll, interval);
  // A phone that comes back from the bank's app asks at once.
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible" && !final()) ask().catch(() => {});
  });
})();
