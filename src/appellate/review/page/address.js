// ---- the address: which view, which rows, which row; Back goes where it was ---------------------
const VIEWS = ["overview", "review", "people", "labels"];
const FILTERS = ["show", "label", "first", "final", "said", "person", "low", "high", "q"];
const blank = () => ({ view: "overview", show: "", label: -1, first: -1, final: -1, said: -1,
  person: -1, low: "", high: "", q: "", order: "", row: -1 });
const state = blank();
const personOf = new Map((answers ? answers.people : []).map((name, k) => [name, k]));
const isEmpty = (value) => value === "" || value === -1;
const isFiltered = (of = state) => FILTERS.some((name) => !isEmpty(of[name]));
// What a queue without a filter shows.
const QUEUE = data.suggested.length ? "suggested" : "all";

function addressFor(of) {
  const parts = [of.view], add = (name, value) => parts.push(name + "=" + encodeURIComponent(value));
  const list = of.show || "all"; // without another filter a queue has a name, or is the usual one
  const alone = FILTERS.every((name) => name === "show" || isEmpty(of[name]));
  if (of.view === "review" && alone && list !== QUEUE) add("show", list);
  for (const name of FILTERS) {
    const value = of[name];
    if (isEmpty(value) || (name === "show" && of.view === "review" && alone)) continue;
    if (["label", "first", "final", "said"].includes(name)) add(name, classes[value]);
    else add(name, name === "person" ? answers.people[value] : value);
  }
  if (of.order) add("order", of.order);
  if (of.row >= 0 && of.view === "review") add("row", nameOf(of.row));
  return "#" + parts.join("&");
}
const linkTo = (wanted) => addressFor({ ...blank(), ...wanted });
function readAddress() {
  const found = blank(), [view, ...parts] = location.hash.slice(1).split("&");
  if (VIEWS.includes(view) && !$("view-" + view).dataset.missing) found.view = view;
  for (const part of parts) {
    const [name, ...rest] = part.split("=");
    let value = rest.join("=");
    try { value = decodeURIComponent(value); } catch { continue; }
    if (["label", "first", "final", "said"].includes(name)) found[name] = classOf.get(value) ?? -1;
    else if (name === "person") found.person = personOf.get(value) ?? -1;
    else if (name === "row") found.row = rowOf.get(value) ?? -1;
    else if (name === "order") found.order = orders[value] ? value : "";
    else if (name === "show") found.show = shows[value] ? value : "";
    else if (["low", "high"].includes(name)) found[name] = value !== "" && Number(value) >= 0 ? value : "";
    else if (name === "q") found.q = value;
  }
  if (found.view === "review" && !isFiltered(found)) found.show = QUEUE;
  if (found.show === "all" || (found.show === "pair" && (found.first < 0 || found.final < 0))) found.show = "";
  if (!answers) found.said = found.person = -1;
  return found;
}
let pending = 0, written = 0, late = ""; // `late`: the address of a step that is not written yet
const OFTEN = 60; // milliseconds between two entries; browsers refuse too many
// A new view or list is a new entry of the history; a step to the next row is not.
function writeAddress(isNew) {
  if (isNew) { pushAddress(addressFor(state)); return; }
  clearTimeout(pending);
  late = addressFor(state);
  if (Date.now() - written > OFTEN) writeStep(); else pending = setTimeout(writeStep, OFTEN);
}
function writeStep() {
  const address = dropStep();
  if (!address) return;
  written = Date.now();
  if (address !== location.hash) window.history.replaceState(window.history.state, "", address);
}
function pushAddress(address) {
  writeStep(); // so that Back returns to this row, not to the one before
  written = Date.now();
  if (address !== location.hash) window.history.pushState({ depth: depth() + 1 }, "", address);
}
function dropStep() {
  const address = late;
  clearTimeout(pending);
  late = "";
  return address;
}
const depth = () => (window.history.state && window.history.state.depth) || 0;
function goTo(wanted) { // a view with its filters
  Object.assign(state, blank(), wanted);
  if (state.view === "review" && !isFiltered() && wanted.row === undefined) state.show = QUEUE;
  if (state.show === "all") state.show = "";
  writeAddress(true);
  arrive(true);
}
function arrive(moved) { // show what the state says
  dropStep();
  trail = [];
  for (const view of VIEWS) {
    $("view-" + view).hidden = view !== state.view;
    const link = document.querySelector(`nav [data-view="${view}"]`);
    if (view === state.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  root.dataset.view = state.view;
  document.title = `${titles[state.view]}${data.title ? " – " + data.title : ""}`;
  scrollTo(0, 0);
  views[state.view]();
  showStatus();
  if (moved) (state.view === "labels" ? table : $("main")).focus({ preventScroll: true });
}
const titles = { overview: "Overview", review: "Review", people: "Annotators", labels: "Labels" };
const views = {}; // how each is shown
function follow() { // Back, Forward, or an address that was typed
  Object.assign(state, readAddress());
  arrive(false);
}
addEventListener("popstate", follow);
document.addEventListener("click", (event) => { // links within the page
  const link = event.target.closest('a[href^="#"]');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (link.classList.contains("skip")) { $("main").focus(); return; }
  pushAddress(link.hash);
  Object.assign(state, readAddress());
  arrive(true);
});
