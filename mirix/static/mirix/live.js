// Keeps a part of a page as it is on the server: asks every few seconds while the page is in sight, and stops when
// the server says that it is over. What comes is HTML of the server's own, escaped as that of the page.
const part = document.querySelector("[data-live]");
let etag = "";
let timer;
let over = false;

async function ask() {
  try {
    const answer = await fetch(part.dataset.live, { headers: etag ? { "If-None-Match": etag } : {}, redirect: "manual" });
    if (answer.status === 200) {
      etag = answer.headers.get("ETag");
      // Somebody is reading or on their way by keyboard: what is opened and focused stays for this time.
      if (!part.contains(document.activeElement)) part.innerHTML = await answer.text();
      else etag = "";
    } else if (answer.status !== 304) return; // logged out, or gone: the link to refresh says more
    over = answer.headers.get("X-Run-State") === "over" && etag !== "";
  } catch {
    // The server is away for now.
  }
  wait();
}

function wait() {
  clearTimeout(timer);
  if (!over && document.visibilityState === "visible") timer = setTimeout(ask, part.dataset.every * 1000);
}

wait();
document.addEventListener("visibilitychange", wait);
