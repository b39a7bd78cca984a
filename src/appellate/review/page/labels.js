// ---- Labels: how many rows each label has, and the list of rows ---------------------------------------------
const table = $("table");
let gallery = false;
const sheet = makeList(table, $("spacer"), $("rows"), { id: "r-", make: (at) => (gallery ? makeLine(at) : makeRow(at)),
  shape: () => {
    const top = table.getBoundingClientRect().top + scrollY;
    const room = Math.max(innerHeight - top - lengthOf("--foot") - 12, 300);
    root.style.setProperty("--room", Math.round(room) + "px");
    const across = gallery ? Math.max(2, Math.floor(table.clientWidth / lengthOf("--card-width"))) : 1;
    root.style.setProperty("--across", String(across));
    return { across, line: lengthOf(gallery ? "--card" : "--row"), head: gallery ? 0 : $("head").offsetHeight };
  } });
const columns = ["row", "label", "confidence", "outcome"];
for (const name of columns) {
  const cell = h("div", { role: "columnheader", "data-sort": name });
  cell.append(button({}, () => {
    state.order = name + (state.order === name + "-up" ? "-down" : "-up");
    relist();
    table.focus({ preventScroll: true });
  }, name));
  $("head").append(cell);
}
function markOrder() {
  const [name, way] = state.order.split("-");
  for (const cell of $("head").children)
    if (cell.dataset.sort === name && way)
      cell.setAttribute("aria-sort", way === "up" ? "ascending" : "descending");
    else cell.removeAttribute("aria-sort");
}
function makeRow(at) {
  const i = view[at], gone = isExcluded(i), wanted = wantedText(), text = textOf(i);
  const cell = (cls, ...content) => h("span", { class: cls, role: "gridcell", dir: "auto" }, ...content);
  const row = h("div", { class: "r", role: "row", id: "r-" + i, "aria-rowindex": at + 2,
    "aria-selected": i === current ? "true" : "false" },
  cell("id", thumb(i), h("span", { class: "name" },
    wanted ? h("span", { class: "whole" }, h("span", {}, ...marked(nameOf(i), wanted, 200))) : whole(nameOf(i)),
    text ? h("span", { class: "snippet", dir: "auto" }, ...marked(text, wanted, 300)) : null)),
  cell("labels", labelLine(i)),
  cell("meter", bar(gone ? 0 : confidence[i] / WHOLE, "f-appeal"), gone ? "–" : decimal(confidence[i])),
  cell("outcome", chip(i)));
  row.addEventListener("click", () => openRow(i));
  return row;
}
function makeLine(line) { // of the gallery
  const row = h("div", { class: "cards", role: "row", "aria-rowindex": line + 2 }), { across } = sheet.shape;
  for (let at = line * across; at < Math.min((line + 1) * across, view.length); at++) {
    const i = view[at];
    const card = h("div", { class: "card-item", role: "gridcell", id: "r-" + i,
      "aria-selected": i === current ? "true" : "false" }, thumb(i),
    said("span", "name" + (changed(i) ? " a" : ""), cut(classes[finalOf(i)], 60)),
    chip(i), h("span", { class: "quiet" }, cut(nameOf(i))));
    card.addEventListener("click", () => openRow(i));
    row.append(card);
  }
  return row;
}
const openRow = (i) => { if (i >= 0) goTo({ ...state, view: "review", row: i }); };
function moveTo(by) { // in the list, without opening the row
  if (!view.length) return;
  const at = Math.min(view.length - 1, Math.max(0, view.indexOf(current) + by));
  current = view[at];
  sheet.reveal(at);
  sheet.draw(true);
}
function relist() { // other filters or another order: a new entry of the history
  state.row = current = -1; // a new list starts at its top
  writeAddress(true);
  views.labels();
  say($("count").textContent);
}
views.labels = () => {
  if (!filled) fillControls();
  for (const name of ["show", "order"]) $(name).value = state[name] || (name === "order" ? "review" : "");
  $("label").value = state.label >= 0 ? state.label : "";
  $("person-select").value = state.person >= 0 ? state.person : "";
  if ($("search").value !== state.q) $("search").value = state.q;
  table.scrollTop = 0;
  refreshLabels();
  if (!view.includes(current)) current = view.length ? view[0] : -1;
  sheet.reveal(view.indexOf(current));
  sheet.draw(true);
};
function refreshLabels() {
  filterRows();
  const narrowed = isFiltered(), words = sayFilter();
  $("clear").classList.toggle("out", !narrowed);
  $("count").textContent = narrowed ? `${count(view.length)} of ${plural(n, "row")}` : plural(n, "row");
  $("filter-name").textContent = narrowed ? words : "";
  $("review-list").href = addressFor({ ...state, view: "review", row: -1 });
  $("review-list").hidden = !view.length;
  table.setAttribute("aria-rowcount", view.length + 1);
  $("empty").hidden = view.length > 0;
  renderFacets();
  markOrder();
  sheet.size();
  sheet.draw(true);
}
const MOST_LABELS = 1000;
function countLabels() { // by label: rows at first, rows now, changed to and from, expected wrong
  const by = new Map(), of = (j) => {
    if (!by.has(j)) by.set(j, { j, first: 0, now: 0, to: 0, from: 0, wrong: 0 });
    return by.get(j);
  };
  for (let i = 0; i < n; i++) {
    const label = labelNow(i), was = firstOf(i);
    of(was).first++;
    if (label < 0) continue;
    of(label).now++;
    of(label).wrong += isSeen(i) ? 0 : 1 - confidence[i] / WHOLE;
    if (label !== was) { of(label).to++; of(was).from++; }
  }
  return [...by.values()].sort((x, y) => y.now - x.now || x.j - y.j);
}
function renderFacets() {
  const all = countLabels(), most = Math.max(1, ...all.map((each) => each.now));
  const focused = document.activeElement && document.activeElement.closest("#facets") &&
    document.activeElement.dataset.label;
  const line = (each) => h("tr", {}, h("th", { scope: "row" }, button({ class: "facet", "data-label": each.j,
    "aria-pressed": String(state.label === each.j) }, () => {
    state.label = state.label === each.j ? -1 : each.j;
    relist();
  }, said("span", "", cut(classes[each.j], 60)), bar(each.now / most, "f-appeal"))),
  h("td", { class: "num" }, count(each.now)),
  compared ? h("td", { class: "num moves", title: `${each.to} changed to it, ${each.from} changed from it` },
    each.to || each.from ? `+${each.to} −${each.from}` : "–") : null,
  calibrated ? h("td", { class: "num" }, each.wrong < 9.95 ? each.wrong.toFixed(1) : count(Math.round(each.wrong))) : null);
  $("facets").replaceChildren(...all.slice(0, MOST_LABELS).map(line));
  if (focused) ($("facets").querySelector(`[data-label="${focused}"]`) || table).focus({ preventScroll: true });
}

// ---- controls: filled when the list is first shown --------------------------------------------------------------
let filled = false;
function fillControls() {
  filled = true;
  for (const [name, [title]] of Object.entries(orders))
    $("order").append(h("option", { value: name }, title));
  for (const [name, [title]] of Object.entries(shows)) {
    if (name === "all") continue;
    const fixed = name && !LIVE.includes(name);
    if (fixed && !sizeOf(name)) continue;
    $("show").append(h("option", { value: name, hidden: name === "pair" ? "" : null },
      fixed ? `${title} (${count(sizeOf(name))})` : title || "two labels"));
  }
  const used = new Set(history.subarray(0, n));
  for (let i = 0; i < n; i++) used.add(finalOf(i));
  [...used].sort((x, y) => collator.compare(classes[x], classes[y])).slice(0, 2000).forEach((j) =>
    $("label").append(h("option", { value: j, dir: "auto" }, cut(classes[j], 80))));
  if (answers) answers.people.map((name, k) => [name, k]).slice(0, 5000)
    .sort((x, y) => collator.compare(x[0], y[0])).forEach(([name, k]) =>
      $("person-select").append(h("option", { value: k, dir: "auto" }, cut(name, 60))));
}
$("person-choice").hidden = !answers;
