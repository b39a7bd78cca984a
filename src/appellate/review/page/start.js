// ---- keys and controls ------------------------------------------------------------------------
const pageful = () =>
  Math.max(1, Math.floor((table.clientHeight - shape.head) / shape.line) - 1) * shape.across;
const moves = {
  ArrowDown: () => step(shape.across), ArrowUp: () => step(-shape.across),
  ArrowRight: () => gallery && step(1), ArrowLeft: () => gallery && step(-1),
  PageDown: () => step(pageful()), PageUp: () => step(-pageful()),
  Home: () => step(-view.length), End: () => step(view.length),
};
const keys = {
  j: () => step(1), k: () => step(-1),
  a: () => choose(current, appeal(current)),
  v: () => choose(current, verdict(current)),
  n: () => decide(current, "none"),
  o: () => askLabel(current),
  u: () => takeBack(current),
  b: () => goBack(),
};
const always = { e: openFiles, g: () => data.images && setGallery(!gallery),
  "/": () => $("search").focus(), "?": () => $("help").showModal() };
function setGallery(on) {
  gallery = on;
  document.documentElement.classList.toggle("gallery", on);
  $("gallery").setAttribute("aria-pressed", String(on));
  size();
  draw(true);
  if (current >= 0 && view.includes(current)) reveal(view.indexOf(current));
}
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  // A dialog that was just closed still has the focus for a moment.
  const at = event.target, typing = at.closest("input") && !at.closest("dialog:not([open])");
  if (event.key === "Escape") {
    if (trail.length) goBack();
    else if (document.documentElement.classList.contains("sheet")) closeSheet();
    else table.focus({ preventScroll: true });
    return;
  }
  if (typing) return;
  const digit = /^[1-9]$/.test(event.key);
  const act = always[event.key] || (current >= 0 && (keys[event.key] || (digit && (() => {
    const each = ranked(current)[Number(event.key) - 1];
    if (each !== undefined) choose(current, each.label);
  }))));
  const move = at === table || !at.closest("select, button, a, [tabindex]") ? moves[event.key] : null;
  if (!act && !move) return;
  event.preventDefault(); // so that no select takes a review key for its own
  if (at.closest("select")) table.focus({ preventScroll: true });
  (act || move)();
});
let timer = 0;
$("search").addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(() => { refresh(); say($("count").textContent); }, 120);
});
for (const id of ["show", "label", "order"]) $(id).addEventListener("change", () => {
  refresh();
  table.focus({ preventScroll: true });
  say($("count").textContent);
});
$("clear").addEventListener("click", () => { clearFilters(); table.focus({ preventScroll: true }); });
$("empty-clear").addEventListener("click", () => { clearFilters(); table.focus({ preventScroll: true }); });
$("gallery").addEventListener("click", () => setGallery(!gallery));
$("gallery").hidden = !data.images;
document.documentElement.classList.toggle("texts", Boolean(data.texts));
$("filters").addEventListener("click", () => {
  const on = document.documentElement.classList.toggle("filtering");
  $("filters").setAttribute("aria-expanded", String(on));
  size();
  draw(true);
});
$("files-button").addEventListener("click", openFiles);
$("help-button").addEventListener("click", () => $("help").showModal());
$("dismiss").addEventListener("click", () => { refused = ""; showStatus(); });
for (const node of document.querySelectorAll("[data-show]"))
  node.addEventListener("click", () => lookAt(node.dataset.show));
for (const node of document.querySelectorAll("[data-pair]"))
  node.addEventListener("click", () => lookAt("pair", node.dataset.pair.split(" ").map(Number)));
for (const node of document.querySelectorAll("[data-export]"))
  node.addEventListener("click", () => exportFile(node.dataset.export));
for (const node of document.querySelectorAll("dialog [data-close]"))
  node.addEventListener("click", () => node.closest("dialog").close());
$("import").addEventListener("change", async () => {
  const [file] = $("import").files;
  if (file) await importFile(file);
  $("import").value = "";
});

async function start() {
  for (const [i, [kind, label]] of Object.entries(data.decisions))
    decisions.set(Number(i), { kind, label, time: "" });
  if (server) await fetchDecisions().catch((error) => {
    refused = "Earlier decisions are not shown: " + error.message;
  });
  recall();
  refresh(true);
  showStatus();
  if (unsaved.size) flush();
  document.documentElement.dataset.ready = "true";
}
start();
