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
// What was wrong with the last try is not wrong with the next page.
document.addEventListener("htmx:beforeSwap", () => {
  const problem = document.getElementById("problem");
  if (problem) problem.replaceChildren();
});
