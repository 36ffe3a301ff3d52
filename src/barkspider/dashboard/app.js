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
  let failures = 0;
  const show = (event) => {
    failures = 0;
    live.innerHTML = JSON.parse(event.data);
    live.dataset.updates = Number(live.dataset.updates || 0) + 1;
  };
  // Nobody will answer any more: what is shown stays, and says so.
  const end = (words) => {
    source.close();
    const said = document.createElement("p");
    said.className = "notice";
    said.id = "ended";
    said.setAttribute("role", "status");
    said.textContent = words;
    live.prepend(said);
  };
  source.addEventListener("message", show);
  source.addEventListener("end", (event) => {
    show(event);
    end("The crawl has ended, and its dashboard with it: this is its last state. `barkspider dashboard` shows the job again.");
  });
  source.addEventListener("error", () => {
    const state = document.getElementById("state");
    if (state) state.classList.add("lost");
    failures += 1;
    if (failures === 5) end("The dashboard does not answer any more: this is what it showed last.");
  });
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload(); // who comes back to it sees what is, and not what was
  });
}
