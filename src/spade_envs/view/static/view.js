// Filtering while one types, refresh of what grows, keys. Every page works without this file.
"use strict";

const put = (target, html) => { target.innerHTML = html; };  // made and escaped by this server

// ---- filters
for (const form of document.querySelectorAll("form[data-live]")) {
  const target = document.getElementById(form.dataset.into);
  let timer = 0, latest = 0;
  const ask = async () => {
    const values = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    const number = ++latest;
    const answer = await fetch(`${form.dataset.live}?${values}`);
    const html = await answer.text();
    if (answer.ok && number === latest) {  // an answer that came late is not shown
      put(target, html);
      document.getElementById("said").textContent = target.querySelector(".facts").textContent;
      history.replaceState(null, "", `${form.action}?${values}`);
    }
  };
  const soon = (event) => {
    clearTimeout(timer);
    timer = setTimeout(ask, event.target.type === "search" ? 150 : 20);
  };
  form.addEventListener("input", soon);
  form.addEventListener("change", soon);
}

// ---- what grows
for (const target of document.querySelectorAll("[data-refresh]")) {
  const ask = async () => {
    if (!document.hidden) {
      const seen = target.querySelector("[data-version]")?.dataset.version ?? "";
      try {
        const answer = await fetch(`${target.dataset.refresh}?seen=${encodeURIComponent(seen)}`);
        if (answer.status === 200) put(target, await answer.text());
      } catch { /* the server is gone; the page stays as it is */ }
    }
    setTimeout(ask, 2000);
  };
  setTimeout(ask, 2000);
}

// ---- keys
document.addEventListener("keydown", (event) => {
  if (event.target.matches("[data-send]") && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.target.form.requestSubmit();
    return;
  }
  if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    const search = document.querySelector("input[type=search]");
    if (search) { search.focus(); event.preventDefault(); }
  } else if (event.key === "j" || event.key === "k") {
    const links = [...document.querySelectorAll("[data-row]")].map((row) => row.querySelector("a")).filter(Boolean);
    const place = links.indexOf(document.activeElement);
    const next = place < 0 ? 0 : place + (event.key === "j" ? 1 : -1);
    links[Math.max(0, Math.min(links.length - 1, next))]?.focus();
  } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    if (event.target.closest(".scroll, .columns")) return;  // there the arrows scroll
    document.querySelector(`a[rel=${event.key === "ArrowLeft" ? "prev" : "next"}]`)?.click();
  }
});
