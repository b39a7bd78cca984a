// ---- what is listed, and in which order ---------------------------------------------------------
const rank = new Map(data.suggested.map((row, place) => [row, place]));
const collator = new Intl.Collator(undefined, { numeric: true });
const byText = (value) => (a, b) => collator.compare(value(a), value(b)) || a - b;
// The suggested rows first, then the least confident ones.
const urgency = (i) => rank.get(i) ?? 1e6 + confidence[i];
const byLabel = byText((i) => classes[finalOf(i)]);
// By a whole number of a row, or by comparing two rows.
const orders = {
  review: ["worth checking", urgency],
  table: ["as in the table", () => 0],
  "confidence-up": ["least confident first", (i) => confidence[i]],
  "confidence-down": ["most confident first", (i) => WHOLE - confidence[i]],
  "margin-up": ["smallest lead first", (i) => margin[i]],
  ...(suspicion && { suspicion: ["candidates most doubtful first", (i) => WHOLE - suspicion[i]] }),
  "row-up": ["name A–Z", byText(nameOf)],
  "row-down": ["name Z–A", (x, y) => byText(nameOf)(y, x)],
  "label-up": ["label A–Z", byLabel],
  "label-down": ["label Z–A", (x, y) => byLabel(y, x)],
  "outcome-up": ["changed first", (i) => (changed(i) ? 0 : 1)],
  "outcome-down": ["unchanged first", (i) => (changed(i) ? 1 : 0)],
};
const FEW = 5000; // below this confidence a label is unlikely
const shows = {
  "": ["all rows", () => true],
  suggested: ["suggested", (i) => rank.has(i)],
  ...(compared && { changed: ["changed", changed],
    unchanged: ["unchanged", (i) => unchanged(i) && contested(i)] }),
  ...(votes && { tied: ["tied votes", (i) => votes[i] < 0 && starts[i + 1] > starts[i]],
    against: ["against the majority", (i) => votes[i] >= 0 && !settled.has(i) && votes[i] !== finalOf(i)] }),
  ...(answers && { agreed: ["all answers agree", agreed] }),
  outside: [OUTSIDE, (i) => outcomeOf(i) === OUTSIDE],
  unanswered: [UNANSWERED, (i) => outcomeOf(i) === UNANSWERED],
  single: ["one candidate", (i) => unchanged(i) && !contested(i)],
  close: ["close calls", close],
  low: ["confidence below 0.50", (i) => !settled.has(i) && confidence[i] < FEW],
  suspected: ["true label may be missing", suspected],
  open: ["not reviewed", (i) => !decisions.has(i)],
  done: ["reviewed", (i) => decisions.has(i)],
  pair: ["", (i) => isPair(i, state.first, state.final)],
  noted: ["with a note", (i) => notes.has(i)],
};
shows.all = shows[""];
const LIVE = ["open", "done", "noted", "pair"]; // these change with every decision
const sizes = new Map(); // rows of each of the other lists
function sizeOf(name) {
  if (!shows[name]) return 0;
  if (name === "suggested") return data.suggested.length;
  if (!sizes.has(name) || LIVE.includes(name)) {
    let found = 0;
    for (let i = 0; i < n; i++) found += shows[name][1](i);
    sizes.set(name, found);
  }
  return sizes.get(name);
}
const sorted = {}; // one sorted list of all rows for every order asked for
const MOST_ROWS = 2 ** 21;
function inOrder(order) {
  if (!sorted[order]) {
    const by = orders[order][1];
    sorted[order] = by.length === 2 ? Uint32Array.from({ length: n }, (_, i) => i).sort(by)
      : Uint32Array.from(Float64Array.from({ length: n }, (_, i) => by(i) * MOST_ROWS + i).sort(),
        (key) => key % MOST_ROWS);
  }
  return sorted[order];
}
const haystack = [];
function hay(i) {
  haystack[i] ??= [nameOf(i), ...shownOf(i).map((each) => classes[each.label]), textOf(i),
    data.groups ? data.groups[i] : ""].join("\n").toLowerCase();
  return haystack[i];
}
let view = [], current = -1, trail = [];
function gave(i, person, label) { // whether a row has such an answer; -1 for any
  for (let k = answers.starts[i]; k < answers.starts[i + 1]; k++)
    if ((person < 0 || answers.person[k] === person) && (label < 0 || answers.label[k] === label))
      return true;
  return false;
}
const wantedText = () => state.q.trim().toLowerCase();
function filterRows() {
  const { label, first, final, said: answer, person, low, high } = state, wanted = wantedText();
  const test = shows[state.show][1], tests = [];
  if (state.show) tests.push(test);
  if (label >= 0) tests.push((i) => firstOf(i) === label || labelNow(i) === label);
  const pair = state.show === "pair" && first >= 0 && final >= 0;
  if (first >= 0 && !pair) tests.push((i) => firstOf(i) === first);
  if (final >= 0 && !pair) tests.push((i) => labelNow(i) === final);
  if (answer >= 0 || person >= 0) tests.push((i) => gave(i, person, answer));
  if (low !== "") tests.push((i) => confidence[i] >= Math.round(low * WHOLE));
  if (high !== "") tests.push((i) => confidence[i] < Math.round(high * WHOLE));
  if (wanted) tests.push((i) => hay(i).includes(wanted));
  const all = inOrder(state.order || "review");
  view = tests.length ? all.filter((i) => tests.every((each) => each(i))) : all;
}
function sayFilter() { // in words
  const parts = [];
  if (state.show === "pair") return `${classes[state.first]} or ${classes[state.final]}`;
  if (state.show) parts.push(shows[state.show][0]);
  if (state.person >= 0) parts.push(`answered by ${answers.people[state.person]}`);
  if (state.said >= 0) parts.push(`answer ${classes[state.said]}`);
  if (state.first >= 0) parts.push(`first label ${classes[state.first]}`);
  if (state.final >= 0) parts.push(`final label ${classes[state.final]}`);
  if (state.label >= 0) parts.push(`label ${classes[state.label]}`);
  if (state.low !== "" && state.high !== "") parts.push(`confidence ${state.low} to ${state.high}`);
  else if (state.low !== "") parts.push(`confidence from ${state.low}`);
  else if (state.high !== "") parts.push(`confidence below ${state.high}`);
  if (state.q) parts.push(`“${state.q}”`);
  const text = parts.join(", ") || "all rows";
  return text[0].toUpperCase() + text.slice(1);
}

// ---- a list of which only the rows in sight exist ------------------------------------------------
function makeList(box, spacer, holder, settings) {
  const list = { shape: { line: 44, across: 1, head: 0 }, drawn: [-1, -1] };
  list.size = () => {
    list.shape = settings.shape();
    spacer.style.height = Math.ceil(view.length / list.shape.across) * list.shape.line + "px";
  };
  list.draw = (force) => {
    const { line, head, across } = list.shape, lines = Math.ceil(view.length / across);
    const first = Math.max(0, Math.floor(box.scrollTop / line) - 4);
    const last = Math.min(lines, Math.ceil((box.scrollTop + box.clientHeight - head) / line) + 4);
    if (!force && first === list.drawn[0] && last === list.drawn[1]) return;
    list.drawn = [first, last];
    holder.replaceChildren(...Array.from({ length: Math.max(0, last - first) }, (_, k) =>
      settings.make(first + k)));
    holder.style.transform = `translateY(${first * line}px)`;
    const active = settings.id + current;
    if (current >= 0 && $(active)) box.setAttribute("aria-activedescendant", active);
    else box.removeAttribute("aria-activedescendant");
  };
  list.reveal = (at) => {
    if (at < 0) return;
    const { line, head, across } = list.shape, top = Math.floor(at / across) * line;
    const seen = box.clientHeight - head;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + line > box.scrollTop + seen) box.scrollTop = top + line - seen;
  };
  list.pageful = () =>
    Math.max(1, Math.floor((box.clientHeight - list.shape.head) / list.shape.line) - 1) * list.shape.across;
  let waiting = false;
  box.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; list.draw(false); });
  }, { passive: true });
  return list;
}
const lengthOf = (name) => parseFloat(getComputedStyle(root).getPropertyValue(name));
let awaited = new Set(); // names of rows whose decision is not saved
function chipOf(i) {
  const d = decisions.get(i);
  if (d) return [(d.label ? "done" : "none") + (awaited.has(nameOf(i)) ? " unsaved" : ""),
    d.label ? "✓ " + cut(d.label, 60) : "✗ not usable"];
  const word = outcomeOf(i);
  return [{ excluded: "none", reviewed: "done", [OUTSIDE]: "outside" }[word] ||
    (changed(i) ? "changed" : "unchanged"), word];
}
function chip(i) { // its first word is in view, where there is no room for more
  const [look, word] = chipOf(i), [first, ...rest] = look === "outside" ? word.split(" ") : [word];
  return h("span", { class: "chip " + look, title: rest.length ? word : null }, first,
    rest.length ? h("span", { class: "quiet" }, " " + rest.join(" ")) : null);
}
// The label of a row in one line: what it was, if it changed, and what it is.
function labelLine(i) {
  const d = decisions.get(i), now = d ? d.label : excluded(i) ? "" : classes[finalOf(i)];
  const before = d && d.label !== classes[finalOf(i)] ? classes[finalOf(i)]
    : compared && changed(i) ? classes[firstOf(i)] : "";
  return h("span", { class: "label", dir: "auto" },
    before ? h("span", { class: "was" }, h("span", { class: "quiet" }, "was "), cut(before, 80)) : null,
    before ? " " : null,
    h("b", { class: before ? "a" : null }, now ? cut(now, 80) : "–"));
}
function redraw() { // after decisions that are not the next row's
  awaited = new Set(trouble ? [...unsaved.values()].map((record) => record.id) : []);
  if (state.view === "review") { queue.draw(true); renderItem(true); }
  else if (state.view === "labels") refreshLabels();
  else views[state.view]();
  showStatus();
}
