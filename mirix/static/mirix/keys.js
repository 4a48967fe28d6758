// Keys of a page: an element with data-key="x" is clicked by the key x; a text field is focused instead.
// Nothing happens while somebody types, or with a modifier held. A key presses a button, which decides, only
// once the page was in sight for a moment: the second of two quick presses is meant for the page before.
const MOMENT = 1500; // milliseconds; the animation of .mx-btn--arming takes as long
let armed = false;
let timer;

function arm() {
  const buttons = document.querySelectorAll(".mx-page button[data-key]");
  armed = false;
  clearTimeout(timer);
  for (const button of buttons) {
    button.classList.remove("mx-btn--arming");
    void button.offsetWidth; // so that the animation starts over
    button.classList.add("mx-btn--arming");
  }
  if (document.visibilityState !== "visible") return;
  timer = setTimeout(() => {
    armed = true;
    for (const button of buttons) button.classList.remove("mx-btn--arming");
  }, MOMENT);
}

arm();
window.addEventListener("pageshow", arm);
document.addEventListener("visibilitychange", arm);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const target = document.querySelector(`.mx-page [data-key="${CSS.escape(event.key)}"]`);
  if (!target) return;
  event.preventDefault();
  if (target.matches("textarea")) {
    target.focus();
    target.scrollIntoView({ block: "center" });
  } else if (target.matches("button")) {
    if (armed) target.click();
    arm(); // a press that came too early starts the moment over, and one that counted counts once
  } else {
    target.click();
  }
});
