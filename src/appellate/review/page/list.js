// ---- what is listed, and in which order ---------------------------------------------------
const rank = new Map(data.suggested.map((row, place) => [row, place]));
const collator = new Intl.Collator(undefined, { numeric: true });
const byText = (value) => (a, b) => collator.compare(value(a), value(b)) || a - b;
const byNumber = (value, sign) => (a, b) => sign * (value(a) - value(b)) || a - b;
const urgency = Float64Array.from({ length: n }, (_, i) => 1e6 + (changed(i) ? 0 : 1e6) + margin[i]);
for (const [i, at] of rank) urgency[i] = at;
const place = (i) => (changed(i) ? 0 : 1);
const byVerdict = byText((i) => classes[verdict(i)]), byAppeal = byText((i) => classes[appeal(i)]);
const orders = {
  review: ["worth a look first", byNumber((i) => urgency[i], 1)],
  table: ["as in the table", (x, y) => x - y],
  "margin-up": ["closest first", byNumber((i) => margin[i], 1)],
  "margin-down": ["clearest first", byNumber((i) => margin[i], -1)],
  "confidence-up": ["least confident first", byNumber((i) => confidence[i], 1)],
  "confidence-down": ["most confident first", byNumber((i) => confidence[i], -1)],
  ...(suspicion && { suspicion: ["most suspected first", byNumber((i) => suspicion[i], -1)] }),
  "id-up": ["id A–Z", byText(nameOf)],
  "id-down": ["id Z–A", (x, y) => byText(nameOf)(y, x)],
  "verdict-up": ["verdict A–Z", byVerdict],
  "verdict-down": ["verdict Z–A", (x, y) => byVerdict(y, x)],
  "appeal-up": ["appeal A–Z", byAppeal],
  "appeal-down": ["appeal Z–A", (x, y) => byAppeal(y, x)],
  "outcome-up": ["overturned first", byNumber(place, 1)],
  "outcome-down": ["upheld first", byNumber(place, -1)],
};
const shows = {
  "": ["all rows", () => true],
  suggested: ["suggested", (i) => rank.has(i)],
  overturned: ["overturned", changed],
  upheld: ["upheld", (i) => outcomeOf(i) === "upheld" && contested(i)],
  outside: [OUTSIDE, (i) => outcomeOf(i) === OUTSIDE],
  unanswered: [UNANSWERED, (i) => outcomeOf(i) === UNANSWERED],
  single: ["one candidate", (i) => outcomeOf(i) === "upheld" && !contested(i)],
  close: ["closest calls", close],
  suspected: ["suspected: none of these", suspected],
  open: ["not reviewed", (i) => !decisions.has(i)],
  done: ["reviewed", (i) => decisions.has(i)],
};
let pair = null; // from and to of the change that is looked at
shows.pair = ["", (i) => changed(i) && verdict(i) === pair[0] && appeal(i) === pair[1]];
for (const [name, [title]] of Object.entries(orders))
  $("order").append(h("option", { value: name }, title));
for (const [name, [title, test]] of Object.entries(shows)) {
  let found = 0;
  if (name && !["open", "done", "pair"].includes(name)) {
    for (let i = 0; i < n; i++) found += test(i);
    if (!found) continue;
  }
  $("show").append(h("option", { value: name, hidden: name === "pair" ? "" : null },
    found ? `${title} (${count(found)})` : title));
}
const used = new Set(history.subarray(0, n));
for (let i = 0; i < n; i++) used.add(appeal(i));
[...used].sort((x, y) => collator.compare(classes[x], classes[y])).slice(0, 2000).forEach((j) =>
  $("label").append(h("option", { value: j, dir: "auto" }, cut(classes[j], 80))));

const sorted = {}; // one sorted list of all rows for every order asked for
function inOrder(order) {
  if (!sorted[order]) {
    const all = Uint32Array.from({ length: n }, (_, i) => i);
    sorted[order] = order === "table" ? all : all.sort(orders[order][1]);
  }
  return sorted[order];
}
const haystack = [];
function hay(i) {
  haystack[i] ??= [nameOf(i), ...shownOf(i).map((each) => classes[each.label]), data.texts ? data.texts[i] : "",
    data.groups ? data.groups[i] : ""].join("\n").toLowerCase();
  return haystack[i];
}
let view = [], current = -1, trail = [];
function filterRows() {
  const wanted = $("search").value.trim().toLowerCase(), label = $("label").value;
  const test = shows[$("show").value][1];
  view = inOrder($("order").value).filter((i) => test(i) &&
    (label === "" || verdict(i) === Number(label) || appeal(i) === Number(label)) &&
    (!wanted || hay(i).includes(wanted)));
  const narrowed = wanted || label || $("show").value;
  $("clear").classList.toggle("out", !narrowed);
  $("count").textContent = narrowed || view.length < n
    ? `${count(view.length)} of ${count(n)} rows` : `${count(n)} rows`;
}
function refresh(first) { // a new list starts at its top, or at its first row not reviewed
  filterRows();
  trail = [];
  const start = first ? view.find((i) => !decisions.has(i)) : undefined;
  table.scrollTop = 0;
  size();
  select(start ?? (view.length ? view[0] : -1), Boolean(first));
  markOrder();
}
function clearFilters() {
  $("search").value = $("show").value = $("label").value = "";
  refresh();
}
function lookAt(name, chosen) {
  clearFilters();
  if (name === "pair") {
    pair = chosen;
    const option = $("show").querySelector('[value="pair"]');
    option.hidden = false;
    option.textContent = `${cut(classes[pair[0]], 40)} → ${cut(classes[pair[1]], 40)}`;
  }
  $("order").value = name === "suspected" ? "suspicion" : name === "close" ? "margin-up" : "review";
  $("show").value = name;
  refresh(true);
  scrollTo(0, 0);
  table.focus({ preventScroll: true });
  say($("count").textContent);
}

// ---- the table: only the rows in sight exist ------------------------------------------------
const table = $("table"), spacer = $("spacer"), rowsBox = $("rows");
let gallery = false, drawn = [-1, -1], shape = { line: 44, across: 1, head: 36 };
const columns = ["id", "verdict", "", "appeal", "confidence", "margin", "outcome"];
for (const name of columns) {
  const cell = h("div", { role: "columnheader", "data-sort": name || null });
  if (name) cell.append(button({}, () => {
    $("order").value = name + ($("order").value === name + "-up" ? "-down" : "-up");
    refresh();
    table.focus({ preventScroll: true });
  }, name));
  else cell.append(h("span", { class: "quiet" }, "changed"));
  $("head").append(cell);
}
function markOrder() {
  const [name, way] = $("order").value.split("-");
  for (const cell of $("head").children)
    if (cell.dataset.sort === name && way)
      cell.setAttribute("aria-sort", way === "up" ? "ascending" : "descending");
    else cell.removeAttribute("aria-sort");
}
function size() { // the list ends where the window ends
  const style = getComputedStyle(document.documentElement);
  const number = (name) => parseFloat(style.getPropertyValue(name));
  const top = table.getBoundingClientRect().top + scrollY;
  const room = Math.max(innerHeight - top - number("--foot") - 8, 280);
  document.documentElement.style.setProperty("--room", Math.round(room) + "px");
  const across = gallery ? Math.max(2, Math.floor(table.clientWidth / number("--card-width"))) : 1;
  shape = { across, line: number(gallery ? "--card" : "--row"),
    head: gallery ? 0 : $("head").offsetHeight };
  document.documentElement.style.setProperty("--across", String(across));
  spacer.style.height = Math.ceil(view.length / across) * shape.line + "px";
  table.setAttribute("aria-rowcount", Math.ceil(view.length / across) + 1);
}
function chipOf(i) {
  const d = decisions.get(i);
  if (d) return [(d.label ? "done" : "none") + (awaited.has(nameOf(i)) ? " unsaved" : ""),
    d.label ? "✓ " + cut(d.label, 60) : "✗ none"];
  const word = outcomeOf(i);
  return [{ excluded: "none", reviewed: "done", [OUTSIDE]: "outside" }[word] || word, word];
}
function chip(i) { // its first word is in view, where there is no room for more
  const [look, word] = chipOf(i), [first, ...rest] = look === "outside" ? word.split(" ") : [word];
  return h("span", { class: "chip " + look, title: rest.length ? word : null }, first,
    rest.length ? h("span", { class: "quiet" }, " " + rest.join(" ")) : null);
}
function makeRow(at) {
  const i = view[at], heard = !excluded(i), over = overturned(i);
  const cell = (cls, ...content) => h("span", { class: cls, role: "gridcell", dir: "auto" }, ...content);
  const name = cell("id", thumb(i), h("span", { class: "name" }, whole(nameOf(i)),
    data.texts && data.texts[i] ? said("span", "snippet", cut(data.texts[i])) : null));
  const row = h("div", { class: "r" + (over ? " over" : ""), role: "row", id: "r-" + i,
    "aria-rowindex": at + 2, "aria-selected": i === current ? "true" : "false" },
  name, cell("v", heard ? cut(classes[verdict(i)]) : "–"),
  cell("arrow", h("span", { "aria-hidden": "true" }, over ? "→" : heard ? "=" : ""),
    h("span", { class: "quiet" }, over ? "changed to" : "same")),
  cell("a", heard ? cut(classes[appeal(i)]) : "–"),
  cell("meter", bar(heard ? confidence[i] / WHOLE : 0, "f-appeal"),
    heard ? (confidence[i] / WHOLE).toFixed(2) : "–"),
  cell("num", heard ? (margin[i] / WHOLE).toFixed(2) : "–"),
  cell("outcome", chip(i)));
  row.addEventListener("click", () => open(i));
  return row;
}
function makeLine(line) { // of the gallery
  const row = h("div", { class: "cards", role: "row", "aria-rowindex": line + 2 });
  for (let at = line * shape.across; at < Math.min((line + 1) * shape.across, view.length); at++) {
    const i = view[at];
    const card = h("div", { class: "card", role: "gridcell", id: "r-" + i,
      "aria-selected": i === current ? "true" : "false" }, thumb(i),
    said("span", "name" + (changed(i) ? " a" : ""), cut(classes[appeal(i)], 60)),
    chip(i), h("span", { class: "quiet" }, cut(nameOf(i))));
    card.addEventListener("click", () => open(i));
    row.append(card);
  }
  return row;
}
let awaited = new Set(); // names of rows whose decision is not saved
function draw(force) {
  awaited = new Set(trouble ? [...unsaved.values()].map((record) => record.id) : []);
  const { line, head, across } = shape, lines = Math.ceil(view.length / across);
  const first = Math.max(0, Math.floor(table.scrollTop / line) - 4);
  const last = Math.min(lines, Math.ceil((table.scrollTop + table.clientHeight - head) / line) + 4);
  if (!force && first === drawn[0] && last === drawn[1]) return;
  drawn = [first, last];
  const list = [];
  for (let at = first; at < last; at++) list.push(gallery ? makeLine(at) : makeRow(at));
  rowsBox.replaceChildren(...list);
  rowsBox.style.transform = `translateY(${first * line}px)`;
  $("empty").hidden = view.length > 0;
  if (current >= 0 && $("r-" + current)) table.setAttribute("aria-activedescendant", "r-" + current);
  else table.removeAttribute("aria-activedescendant");
}
let waiting = false;
table.addEventListener("scroll", () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(false); });
}, { passive: true });
new ResizeObserver(() => { size(); draw(true); }).observe(document.body);
addEventListener("resize", () => { size(); draw(true); });

function reveal(at) {
  const { line, head, across } = shape, top = Math.floor(at / across) * line;
  const seen = table.clientHeight - head;
  if (top < table.scrollTop) table.scrollTop = top;
  else if (top + line > table.scrollTop + seen) table.scrollTop = top + line - seen;
}
function select(i, shown) {
  current = i;
  const at = i < 0 ? -1 : view.indexOf(i);
  if (shown && at >= 0) reveal(at);
  draw(true);
  renderDetail();
}
function step(by) {
  if (!view.length) return;
  const from = trail.length ? trail[0] : current;
  trail = [];
  const at = Math.min(view.length - 1, Math.max(0, view.indexOf(from) + by));
  select(view[at], true);
}
function moveOn(i) { // a decision goes to the next row; lists by review lose the decided one
  const at = view.indexOf(i), next = view[at + 1] ?? view[at];
  if (["open", "done"].includes($("show").value)) {
    filterRows();
    size();
    select(view.includes(next) ? next : view.length ? view[view.length - 1] : -1, true);
  } else select(next ?? i, true);
}
function reach(i) { // a row that may not be listed
  trail = [];
  if (!view.includes(i)) trail.push(current);
  select(i, true);
}
function visit(i) { // a neighbour: filters stay, and there is a way back
  trail.push(current);
  select(i, true);
  $("detail").focus({ preventScroll: true });
}
function goBack() {
  if (trail.length) select(trail.pop(), true);
}
const narrow = matchMedia("(max-width: 60rem)");
function open(i) {
  trail = [];
  select(i, true);
  if (narrow.matches) openSheet(); else table.focus({ preventScroll: true });
}
