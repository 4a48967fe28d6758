// Keys of a page: an element with data-key="x" is clicked by the key x; a text field is focused instead.
// Nothing happens while somebody types, or with a modifier held.
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
  } else {
    target.click();
  }
});
