"use strict";
// Keeps the page fresh: what is marked data-live is brought from the page as it is now.
(() => {
  const interval = 1000;

  const bring = (page) => {
    for (const shown of document.querySelectorAll("[data-live]")) {
      const fresh = page.getElementById(shown.id);
      // What is unchanged keeps its focus.
      if (fresh && fresh.innerHTML !== shown.innerHTML) shown.replaceChildren(...fresh.childNodes);
    }
  };

  const refresh = async () => {
    try {
      const answer = await fetch(location.pathname, { cache: "no-store" });
      if (answer.ok) bring(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch {
      // The sandbox is being started again.
    }
    setTimeout(refresh, interval);
  };
  setTimeout(refresh, interval);
})();
