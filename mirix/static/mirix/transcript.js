// The link to the next error leads on from the turn in focus, and from the last error to the first of the page.
const link = document.querySelector("[data-next-error]");

function follow() {
  const next = document.querySelector(".mx-turn:target [data-after-error]");
  link.href = next ? next.href : link.dataset.nextError;
}

follow();
window.addEventListener("hashchange", follow);
link.addEventListener("click", follow); // the event of a new place may come after the click
