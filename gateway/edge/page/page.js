"use strict";
(() => {
  const page = document.querySelector("[data-checkout]");
  if (!page) return;
  const interval = 2000, slowest = 15000, returnAfter = 4000;
  const clockOffset = Date.parse(page.dataset.now) - Date.now();
  const ends = Date.parse(page.dataset.ends);
  const left = page.querySelector("[data-left]");
  let wait = interval;

  const final = () => page.dataset.checkout !== "PENDING";

  const goBack = () => {
    const link = page.querySelector("[data-back] a[href]");
    if (link) setTimeout(() => location.assign(link.href), returnAfter);
  };

  const show = ({ status, success_url }) => {
    if (final() || status === page.dataset.checkout) return;
    page.dataset.checkout = status;
    if (success_url) {
      const back = page.querySelector("[data-back]");
      back.querySelector("a").href = success_url;
      back.hidden = false;
    }
    for (const part of page.querySelectorAll("[data-when]")) {
      part.hidden = part.dataset.when !== status;
      if (!part.hidden && part.dataset.title) document.title = part.dataset.title;
    }
    if (!final()) return;
    // What could still be paid with must not be left lying on a page that ended.
    for (const trace of document.querySelectorAll("link[rel=payment], meta[name=qr-string], [data-when=PENDING]")) trace.remove();
    goBack();
  };

  const two = (n) => String(n).padStart(2, "0");

  const tick = () => {
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
    show((await answer.json()).data);
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

  if (final()) return goBack();
  if (ends) tick();
  setTimeout(poll, interval);
  // A phone that comes back from the bank's app asks at once.
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible" && !final()) ask().catch(() => {});
  });
})();
