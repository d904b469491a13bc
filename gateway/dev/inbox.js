"use strict";
// Keeps a list of arrivals fresh: the inbox's, and the mails'.
(() => {
  const interval = 1500;

  // Keep opened parts open and closed ones closed when something new arrives.
  const bring = (fresh) => {
    const shown = document.getElementById("arrivals");
    if (!fresh || fresh.dataset.latest === shown.dataset.latest) return;
    for (const part of shown.querySelectorAll("details")) {
      const same = fresh.querySelector("#" + part.id);
      if (same) same.open = part.open;
    }
    shown.replaceWith(fresh);
  };

  const refresh = async () => {
    try {
      const answer = await fetch(location.pathname, { cache: "no-store" });
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        bring(page.getElementById("arrivals"));
      }
    } catch {
      // The sandbox is being started again.
    }
    setTimeout(refresh, interval);
  };
  setTimeout(refresh, interval);
})();
