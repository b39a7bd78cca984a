// ---- Annotators: whose answers to trust ---------------------------------------------------------------------
const FEW_ANSWERS = 10, DOUBTFUL = 0.8, MOST_PEOPLE = 2000;
const people = (data.annotators || []).map((each, k) => ({ ...each, k }))
  .sort((x, y) => (x.reliability ?? 2) - (y.reliability ?? 2) || y.answers - x.answers);
function mistakes() { // by annotator: the most frequent wrong answer, by counts
  const counts = new Map(), totals = new Map(), best = new Map(), l = classes.length;
  for (let i = 0; i < n; i++) {
    const label = labelNow(i);
    if (label < 0) continue;
    for (let e = answers.starts[i]; e < answers.starts[i + 1]; e++) {
      const at = answers.person[e] * l + label, key = at * l + answers.label[e];
      totals.set(at, (totals.get(at) || 0) + 1);
      if (answers.label[e] !== label) counts.set(key, (counts.get(key) || 0) + 1);
    }
  }
  for (const [key, times] of counts) {
    const gave = key % l, at = Math.floor(key / l), k = Math.floor(at / l);
    if (times > 1 && times > (best.get(k) || { times: 0 }).times)
      best.set(k, { label: at % l, gave, times, of: totals.get(at) });
  }
  return best;
}
function drawRange(each) { // a dot for the estimate, a line for its interval
  const { reliability: value, low, high } = each;
  if (value == null) return null;
  const art = s("svg", { class: "range", viewBox: "0 0 100 16", preserveAspectRatio: "none", "aria-hidden": "true" },
    s("line", { class: "grid-line", x1: 0, x2: 100, y1: 8, y2: 8 }));
  if (low != null) art.append(s("line", { class: "spread", x1: 100 * low, x2: 100 * high, y1: 8, y2: 8 }));
  const dot = h("span", { class: "dot" + (value < DOUBTFUL ? " low" : "") });
  dot.style.left = `${100 * value}%`;
  return h("span", { class: "range-box" }, art, dot);
}
const share = (value) => (value == null ? "–" : `${Math.round(100 * value)} %`);
const between = (each) => (each.low == null ? "" : `${Math.round(100 * each.low)} to ${Math.round(100 * each.high)} %`);
function sayPeople() {
  const bad = people.filter((each) => each.high != null && each.high < DOUBTFUL).length;
  const few = people.filter((each) => each.answers < FEW_ANSWERS).length;
  return `${bad ? count(bad) : "None"} of ${plural(people.length, "annotator")} ${bad > 1 ? "are" : "is"} clearly below ` +
    `${100 * DOUBTFUL} %; ${few ? count(few) : "none"} gave fewer than ten answers.`;
}
views.people = () => {
  const worst = mistakes(), chosen = state.person >= 0 ? state.person : people.length ? people[0].k : -1;
  $("people-title").textContent = sayPeople();
  const rows = people.slice(0, MOST_PEOPLE).map((each) => {
    const bad = worst.get(each.k), name = button({ class: "who", "aria-pressed": String(each.k === chosen) },
      () => choosePerson(each.k), said("span", "", cut(each.name, 40)));
    const row = h("tr", { class: each.k === chosen ? "chosen" : null }, h("th", { scope: "row" }, name),
      h("td", { class: "num" }, count(Math.round(each.answers))),
      h("td", { class: "wide" }, drawRange(each)), h("td", { class: "num" }, share(each.reliability)),
      h("td", { class: "num spread-words" }, between(each)), h("td", { class: "num agreement" }, share(each.agreement)),
      h("td", { class: "mistake", dir: "auto" }, bad ? `said ${cut(classes[bad.gave], 30)} for ` +
        `${cut(classes[bad.label], 30)}, ${bad.times}\u00a0of\u00a0${bad.of}` : "–"));
    row.addEventListener("click", (event) => { if (!event.target.closest("button")) choosePerson(each.k); });
    return row;
  });
  $("people-rows").replaceChildren(...rows);
  $("people-more").textContent = people.length > MOST_PEOPLE
    ? `The ${count(MOST_PEOPLE)} least reliable of ${count(people.length)} annotators.` : "";
  renderPerson(chosen);
  const box = $("people-list"), row = box.querySelector(".chosen"); // in view, if it was linked to
  if (row && (row.offsetTop < box.scrollTop || row.offsetTop + row.offsetHeight > box.scrollTop + box.clientHeight))
    box.scrollTop = row.offsetTop - box.clientHeight / 2;
};
function choosePerson(k) {
  const again = document.activeElement && document.activeElement.closest("#people-rows");
  state.person = k;
  writeAddress(true);
  const top = $("people-list").scrollTop;
  views.people();
  $("people-list").scrollTop = top;
  if (again) $("people-rows").querySelector('[aria-pressed="true"]').focus({ preventScroll: true });
  if (narrow.matches) $("person").scrollIntoView({ block: "start" });
}
function renderPerson(k) {
  if (k < 0) { $("person").replaceChildren(); return; }
  const each = data.annotators[k], cells = countCells(k), { shown, all } = mostMixed(cells, $("person").clientWidth - PADDING);
  let rows = 0;
  for (let i = 0; i < n; i++) rows += gave(i, k, -1);
  const reviewed = [...decisions.keys()].filter((i) => isSeen(i) && gave(i, k, -1));
  const hits = reviewed.filter((i) => gave(i, k, labelNow(i))).length;
  $("person").replaceChildren(...[
    h("h2", { dir: "auto" }, `Answers of ${cut(each.name, 60)}`),
    h("p", { class: "note" }, `${plural(Math.round(each.answers), "answer")}` + (each.reliability == null ? "."
      : `; about ${share(each.reliability)} are correct` + (each.low == null ? "." : ` (95 % interval: ${between(each)}).`)) +
      (reviewed.length ? ` Of ${plural(reviewed.length, "reviewed row")}, ${count(hits)} ${hits === 1 ? "was" : "were"} answered correctly.` : "")),
    shown.length ? drawMatrix({ cells, shown, rowWord: "final label", columnWord: "answer", unit: "answer",
      list: (r, c) => goTo({ view: "labels", person: k, final: r, said: c }) }) : null,
    h("p", { class: "note" }, "Rows: the final label. Columns: the answer. Blue: equal, orange: different." +
      (all > shown.length ? ` The ${shown.length} of ${all} labels that are mixed up most.` : "")),
    h("p", { class: "buttons" }, h("a", { class: "button", href: linkTo({ view: "labels", person: k }) },
      `List the ${plural(rows, "row")}`),
    h("a", { class: "button", href: linkTo({ view: "review", person: k, order: "confidence-up" }) }, "Review them")),
  ].filter(Boolean));
}
