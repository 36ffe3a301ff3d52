// What a page does beside what the browser does by itself: it is kept up to date, asks before something is changed, and
// can be light or dark. Text never becomes code here: the server escapes it, and no script may run but this file.
"use strict";

const stored = localStorage.getItem("theme");
if (stored) document.documentElement.dataset.theme = stored;

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
});

for (const form of document.querySelectorAll("form[data-ask]")) {
  form.addEventListener("submit", (event) => {
    if (!confirm(form.dataset.ask)) event.preventDefault();
  });
}

const live = document.querySelector("[data-live]");
if (live) {
  const source = new EventSource(live.dataset.live);
  source.addEventListener("message", (event) => {
    live.innerHTML = JSON.parse(event.data);
    live.dataset.updates = Number(live.dataset.updates || 0) + 1;
  });
  source.addEventListener("error", () => {
    const state = document.getElementById("state");
    if (state) state.classList.add("lost");
  });
  addEventListener("pagehide", () => source.close());
}
