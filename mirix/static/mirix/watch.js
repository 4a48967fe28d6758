// Looks now and then whether what the page shows still waits, and says so where somebody else was faster. Nothing
// that was typed is touched. A page that nobody sees does not ask; it does at once when it is seen again.
(() => {
  const EVERY = 8000; // milliseconds
  const AT_MOST = 120000; // while the server is out of reach, the pauses grow up to this
  const place = document.querySelector("[data-watch]");
  let tag = place.dataset.tag;
  let pause = EVERY;
  let timer;

  function later() {
    clearTimeout(timer);
    if (document.visibilityState === "visible") timer = setTimeout(look, pause);
  }

  function tell(said, isOver) {
    const note = document.getElementById("overtaken");
    note.querySelector("bdi").textContent = said;
    note.hidden = false;
    if (!isOver) return;
    for (const button of place.querySelectorAll("button[type=submit]")) button.disabled = true;
  }

  async function look() {
    try {
      const answer = await fetch(place.dataset.watch, {
        cache: "no-store",
        headers: { "If-None-Match": tag },
        redirect: "manual",
      });
      pause = EVERY;
      if (answer.type === "opaqueredirect") return tell("You are not logged in any more.", false);
      if (answer.status === 404) return tell("This is not there any more.", true);
      if (answer.status === 200) {
        const found = await answer.json();
        tag = answer.headers.get("ETag");
        tell(found.said, found.state !== "proposed");
        if (found.state !== "proposed") return;
      }
    } catch {
      pause = Math.min(2 * pause, AT_MOST);
    }
    later();
  }

  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (document.visibilityState === "visible") look();
  });
  later();
})();
