// ---- keys and controls -------------------------------------------------------------------------------------------
const inReview = { j: () => step(1), k: () => step(-1), ArrowDown: () => step(1), ArrowUp: () => step(-1),
  PageDown: () => step(queue.pageful()), PageUp: () => step(-queue.pageful()),
  Home: () => step(-view.length), End: () => step(view.length) };
const inLabels = { j: () => moveTo(1), k: () => moveTo(-1),
  ArrowDown: () => moveTo(sheet.shape.across), ArrowUp: () => moveTo(-sheet.shape.across),
  ArrowRight: () => gallery && moveTo(1), ArrowLeft: () => gallery && moveTo(-1),
  PageDown: () => moveTo(sheet.pageful()), PageUp: () => moveTo(-sheet.pageful()),
  Home: () => moveTo(-view.length), End: () => moveTo(view.length), Enter: () => openRow(current) };
const deciding = {
  a: () => choose(current, finalOf(current)),
  v: () => choose(current, firstOf(current)),
  n: () => decide(current, "none"),
  o: () => askLabel(current), s: skip, m: () => askNote(current), t: showTruth,
};
const always = { e: openFiles, u: () => takeBack(state.view === "review" && !ended ? current : -1), b: goBack,
  g: () => data.images && state.view === "labels" && setGallery(!gallery),
  "/": () => { if (state.view !== "labels") goTo({ view: "labels" }); $("search").focus(); },
  "?": () => $("help").showModal() };
function setGallery(on) {
  gallery = on;
  root.classList.toggle("gallery", on);
  $("gallery").setAttribute("aria-pressed", String(on));
  sheet.size();
  sheet.draw(true);
  sheet.reveal(view.indexOf(current));
}
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  // A dialog that was just closed still has the focus for a moment.
  const at = event.target, { key } = event;
  const typing = at.closest("input, textarea") && !at.closest("dialog:not([open])");
  if (key === "Escape") {
    if (trail.length) goBack();
    else (state.view === "labels" ? table : $("main")).focus({ preventScroll: true });
    return;
  }
  if (typing) return;
  const reviewing = state.view === "review", rowKeys = reviewing && !ended && current >= 0;
  const moves = reviewing ? inReview : state.view === "labels" ? inLabels : {};
  const free = at === table || at === $("queue") || !at.closest("select, button, a, summary, [tabindex='0']");
  const letter = key.length === 1;
  let act = always[key] || (rowKeys && deciding[key]) || ((letter || free) && moves[key]);
  if (rowKeys && /^[1-9]$/.test(key)) act = () => {
    const each = ranked(current)[Number(key) - 1];
    if (each !== undefined) choose(current, each.label);
  };
  if (!act) return;
  event.preventDefault(); // so that no select takes a review key for its own
  if (at.closest("select")) (state.view === "labels" ? table : $("panel")).focus({ preventScroll: true });
  act();
});
let timer = 0;
$("search").addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(() => {
    const first = !state.q; // one entry of the history for one search
    state.q = $("search").value;
    writeAddress(first);
    current = -1;
    views.labels();
    say($("count").textContent);
  }, 120);
});
const controls = { show: (v) => v, order: (v) => v, label: Number, "person-select": Number };
for (const [id, read] of Object.entries(controls)) $(id).addEventListener("change", () => {
  const name = id === "person-select" ? "person" : id, value = $(id).value;
  state[name] = value === "" && read === Number ? -1 : read(value);
  relist();
  table.focus({ preventScroll: true });
});
function clearFilters() {
  Object.assign(state, { ...blank(), view: "labels", order: state.order });
  relist();
  table.focus({ preventScroll: true });
}
for (const id of ["clear", "empty-clear"]) $(id).addEventListener("click", clearFilters);
$("gallery").addEventListener("click", () => setGallery(!gallery));
$("gallery").hidden = !data.images;
root.classList.toggle("texts", Boolean(data.texts));
root.classList.toggle("images", Boolean(data.images));
root.classList.toggle("calibrated", calibrated);
$("filters").addEventListener("click", () => {
  const on = root.classList.toggle("filtering");
  $("filters").setAttribute("aria-expanded", String(on));
  sheet.size();
  sheet.draw(true);
});
for (const [id, act] of Object.entries({ "act-o": () => askLabel(current), "act-n": () => decide(current, "none"),
  "act-s": skip, "act-m": () => askNote(current), "keep-first": () => choose(current, firstOf(current)),
  previous: () => step(-1), next: () => step(1), undo: always.u, "files-button": openFiles,
  "help-button": () => $("help").showModal(), dismiss: () => { refused = ""; showStatus(); } }))
  $(id).addEventListener("click", act);
for (const node of document.querySelectorAll("[data-export]"))
  node.addEventListener("click", () => exportFile(node.dataset.export));
for (const node of document.querySelectorAll("dialog [data-close]"))
  node.addEventListener("click", () => node.closest("dialog").close());
$("import").addEventListener("change", async () => {
  const [file] = $("import").files;
  if (file) await importFile(file);
  $("import").value = "";
});
let width = innerWidth;
addEventListener("resize", () => {
  if (state.view === "review") { queue.size(); queue.draw(true); }
  else if (state.view === "labels") { sheet.size(); sheet.draw(true); }
  else if (state.view === "overview" && width !== innerWidth) views.overview();
  width = innerWidth;
});

async function start() {
  startOver();
  if (server) await fetchDecisions().catch((error) => {
    refused = "Earlier decisions are not shown: " + error.message;
  });
  recall();
  recallPace();
  follow();
  if (unsaved.size) flush();
  if (server) setTimeout(watch, EVERY);
  root.dataset.ready = "true";
}
start();
