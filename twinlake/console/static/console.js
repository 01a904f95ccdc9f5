// Refreshes the part of the page that has data-part, while the page is visible. Nothing else.
"use strict";

const EVERY_MS = 5000;
const OLD_MS = 30000;

function refreshing(live) {
  let heard = Date.now();
  let busy = false;

  function sayHowOld() {
    const age = Date.now() - heard;
    live.classList.toggle("old", age > OLD_MS);
    const sentence = live.querySelector(".sentence");
    if (age > OLD_MS && sentence) {
      sentence.className = "sentence unknown";
      sentence.textContent =
        "It is not known whether all is well: the console has not answered for " + Math.round(age / 1000) + " s.";
    }
  }

  async function refresh() {
    if (busy || document.visibilityState !== "visible") return;
    busy = true;
    try {
      const stop = AbortSignal.timeout(10000);
      const answer = await fetch(live.dataset.part, { cache: "no-store", signal: stop, redirect: "error" });
      if (answer.status === 401) {
        location.assign("/sign-in");
        return;
      }
      if (answer.ok) {
        const text = await answer.text();
        const focused = document.activeElement && live.contains(document.activeElement) && document.activeElement.id;
        live.innerHTML = text; // made on the server, where every value is escaped
        if (focused) document.getElementById(focused)?.focus();
        heard = Date.now();
      }
    } catch (error) {
      // it is asked again; until then the age tells
    } finally {
      busy = false;
      sayHowOld();
    }
  }

  setInterval(refresh, EVERY_MS);
  document.addEventListener("visibilitychange", refresh);
}

for (const live of document.querySelectorAll("[data-part]")) refreshing(live);
