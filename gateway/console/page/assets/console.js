// Small helps; every page works without them.
"use strict";
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) {
    const text = document.getElementById(button.dataset.copy).textContent;
    await navigator.clipboard.writeText(text);
    const said = button.textContent;
    button.textContent = button.dataset.done;
    setTimeout(() => { button.textContent = said; }, 2000);
    return;
  }
  for (const open of document.querySelectorAll("details.menu[open]")) {
    if (!open.contains(event.target)) open.removeAttribute("open");
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const open of document.querySelectorAll("details.menu[open]")) {
    open.removeAttribute("open");
    open.querySelector("summary").focus();
  }
});
// On a phone the pages' links are one row: this page's link is in sight.
const show = () => {
  const here = document.querySelector(".side [aria-current]");
  if (here) here.parentElement.scrollLeft = here.offsetLeft - (here.parentElement.clientWidth - here.offsetWidth) / 2;
};
show();
addEventListener("resize", show);
document.addEventListener("htmx:afterSettle", ({ detail }) => detail.target === document.body && show());
// As without scripts, the page of the last link is the one that comes. A form's answer comes always: it may be a secret.
let coming;
document.addEventListener("htmx:beforeRequest", ({ detail }) => {
  if (detail.boosted) coming = detail.xhr;
});
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.boosted && detail.requestConfig.verb === "get" && detail.xhr !== coming) detail.shouldSwap = false;
});
// A part of a page that renews itself waits while something in it is pressed or sent, because a button that is replaced
// is not clicked, and a form that is gone is not told what was wrong. Where its renewal fails, it stays as it is, and that is told.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const { target, requestConfig, xhr } = detail;
  if (target === document.body || requestConfig.verb !== "get") return;
  if (xhr.status >= 400 || target.matches(":active") || target.querySelector(".htmx-request")) detail.shouldSwap = false;
});
document.addEventListener("htmx:afterRequest", ({ detail }) => {
  const stale = document.getElementById("stale");
  if (stale && !detail.boosted) stale.hidden = detail.xhr.status >= 200 && detail.xhr.status < 400;
});
// A link or form that reaches nothing says so; a page's part that can't renew itself has said so above.
for (const failed of ["htmx:sendError", "htmx:timeout"]) {
  document.addEventListener(failed, ({ detail }) => {
    const problem = document.getElementById("problem");
    if (!problem || (detail.boosted && detail.xhr !== coming) || (!detail.boosted && detail.requestConfig.verb === "get")) return;
    problem.replaceChildren(document.getElementById("unreached").content.cloneNode(true));
    problem.scrollIntoView({ block: "center" });
  });
}
// And it leaves its reader where they are, by keyboard, in wide tables and in what is open.
const stop = "a[href], button, input, select, textarea, summary, [tabindex='0']";
const alike = (part, one) => [...part.querySelectorAll(stop)].filter((other) => other.tagName === one.tagName && other.getAttribute("href") === one.getAttribute("href"));
const wide = (part) => [...part.querySelectorAll(".scroll")];
let left;
document.addEventListener("htmx:beforeSwap", ({ detail: { target } }) => {
  if (target === document.body || !target.id) return (left = undefined);
  const one = document.activeElement;
  left = { id: target.id, one: target.contains(one) ? one : undefined, n: alike(target, one).indexOf(one), scrolled: wide(target).map((table) => table.scrollLeft), open: [...target.querySelectorAll("details")].map((part) => part.open) };
});
document.addEventListener("htmx:afterSwap", () => {
  const part = left && document.getElementById(left.id);
  if (!part) return;
  wide(part).forEach((table, i) => { table.scrollLeft = left.scrolled[i] ?? 0; });
  part.querySelectorAll("details").forEach((one, i) => { one.open = left.open[i] ?? one.open; });
  if (left.one && !left.one.isConnected) alike(part, left.one)[left.n]?.focus({ preventScroll: true });
  left = undefined;
});
