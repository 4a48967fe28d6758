// Keys of a page: an element with data-key="x" is clicked by the key x; a text field is focused instead, and what
// is folded opens with the focus in its first field. Nothing happens while somebody types, or with a modifier held.
// A key presses a button that decides only once the page was in sight for a moment: the second of two quick presses
// is meant for the page before. Where it says data-confirm, it has to be pressed twice.
const MOMENT = 1500; // milliseconds; the animation of .mx-btn--arming takes as long
const ASKED = 6000; // so long a question waits for the second press, which comes
const APART = 400; // so much later at least: a key that was hit twice asked nobody
const DECIDES = "button[data-key]:not([type=button])";
let armed = false;
let timer;
let asked = null;
let askedAt = 0;

function arm() {
  const buttons = document.querySelectorAll(DECIDES);
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

function say(text) {
  const place = document.querySelector("[data-say]");
  if (place) place.textContent = text;
}

function settle() {
  if (asked) asked.classList.remove("mx-btn--asked");
  asked = null;
  say("");
}

function ask(button) {
  asked = button;
  askedAt = Date.now();
  button.focus();
  button.classList.add("mx-btn--asked");
  say(button.dataset.confirm);
  setTimeout(settle, ASKED);
}

function press(button) {
  if (armed && button.disabled) {
    say(button.dataset.refusal || "");
  } else if (armed && button.dataset.confirm && asked !== button) {
    ask(button);
    return;
  } else if (armed && (asked !== button || Date.now() - askedAt >= APART)) {
    button.click();
  }
  arm(); // a press that came too early starts the moment over, and one that counted counts once
}

function act(target) {
  if (target.matches("textarea, input")) {
    target.focus();
    target.scrollIntoView({ block: "center" });
  } else if (target.matches("summary")) {
    target.parentElement.open = true;
    target.parentElement.querySelector("input:not([type=hidden]), textarea").focus();
  } else if (target.matches(DECIDES)) {
    press(target);
  } else {
    target.click();
  }
}

arm();
window.addEventListener("pageshow", arm);
document.addEventListener("visibilitychange", arm);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const folded = event.target.closest("details[data-folds]");
  if (event.target.closest("input, textarea, select, [contenteditable]")) {
    if (event.key !== "Escape") return;
    event.target.blur();
  }
  if (event.key === "Escape") {
    settle();
    if (folded) {
      folded.open = false;
      folded.querySelector("summary").focus();
    }
    return;
  }
  const open = document.querySelector("dialog[open]");
  if (open) {
    if (event.key === "?") open.close();
    return;
  }
  const key = CSS.escape(event.key);
  const target = document.querySelector(`.mx-page [data-key="${key}"], .mx-undo [data-key="${key}"]`);
  if (!target) return;
  event.preventDefault();
  act(target);
});

// What only helps with a script shows with one.
for (const opener of document.querySelectorAll("[data-opens]")) {
  const dialog = document.getElementById(opener.dataset.opens);
  opener.hidden = false;
  opener.addEventListener("click", () => dialog.showModal());
}

// "Something else" wants words; a reason that was chosen needs none.
for (const form of document.querySelectorAll("form[data-reasons]")) {
  const words = form.querySelector("textarea");
  const follow = () => {
    const chosen = form.querySelector("input[type=radio]:checked");
    words.required = Boolean(chosen && chosen.value === "other");
  };
  form.addEventListener("change", follow);
  follow();
}
