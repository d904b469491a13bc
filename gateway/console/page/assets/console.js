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
document.addEventListener("htmx:afterSettle", show);
// A part of a page that renews itself leaves whoever moves by keyboard where they are.
const stop = "a[href], button, input, select, textarea, summary, [tabindex='0']";
const alike = (part, one) => [...part.querySelectorAll(stop)].filter((other) => other.tagName === one.tagName && other.getAttribute("href") === one.getAttribute("href"));
let left;
document.addEventListener("htmx:beforeSwap", ({ detail: { target } }) => {
  const one = document.activeElement;
  left = target !== document.body && target.id && target.contains(one) ? { one, id: target.id, n: alike(target, one).indexOf(one) } : undefined;
});
document.addEventListener("htmx:afterSettle", () => {
  const part = left && document.getElementById(left.id);
  if (part && !left.one.isConnected) alike(part, left.one)[left.n]?.focus({ preventScroll: true });
  left = undefined;
});
// What was wrong with the last try is not wrong with the next page.
document.addEventListener("htmx:beforeSwap", () => {
  const problem = document.getElementById("problem");
  if (problem) problem.replaceChildren();
});
