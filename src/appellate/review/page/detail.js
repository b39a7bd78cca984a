// ---- one row ----------------------------------------------------------------------------
const MOST = 60; // candidates shown
function ranked(i) {
  return shownOf(i).sort((x, y) => y.after - x.after || y.before - x.before).slice(0, MOST);
}
function answersOf(i) {
  if (!answers) return [];
  const list = [];
  for (let k = answers.starts[i]; k < answers.starts[i + 1]; k++)
    list.push({ person: answers.person[k], label: answers.label[k] });
  return list;
}
function candidate(i, each, at) {
  const j = each.label, d = decisions.get(i), said_ = answersOf(i);
  const people = said_.filter((answer) => answer.label === j).length;
  const tags = [j === verdict(i) && "verdict", j === appeal(i) && "appeal",
    data.truth && data.truth[i] === classes[j] && "truth",
    votes && votes[i] === j && "majority", people && `${people} of ${said_.length} people`,
    each.e < 0 && (votes ? "nobody's answer" : "not a candidate")]
    .filter(Boolean).join(", ");
  const line = (share, cls, word) => h("span", { class: "share" }, bar(share / WHOLE, cls),
    h("span", { class: "quiet" }, word), percent(share));
  return h("li", {}, button({ "aria-pressed": d && d.label === classes[j] ? "true" : "false" },
    () => choose(i, j),
    at < 9 ? h("kbd", {}, String(at + 1)) : h("span", {}),
    h("span", { class: "what" }, said("span", "name", cut(classes[j])),
      tags ? h("span", { class: "tag" }, tags) : null),
    h("span", { class: "shares" }, line(each.before, "f-verdict", " before "),
      line(each.after, "f-appeal", " after "))));
}
function drawRounds(i) { // ends where the bars end, its lines are named
  const list = ranked(i).slice(0, 8), last = nRounds + 1;
  const x = (r) => 24 + (r * 216) / last, y = (value) => 112 - value * 100;
  const art = s("svg", { class: "rounds", viewBox: "0 0 360 132", role: "img",
    "aria-label": "Confidence in each candidate: by the base, after every round, and in the end: " +
      list.map((each) => `${classes[each.label]} ${percent(each.before)} to ${percent(each.after)}`)
        .join(", ") });
  for (const value of [0, 0.5, 1]) art.append(
    s("line", { class: "grid-line", x1: 24, x2: 240, y1: y(value), y2: y(value) }),
    s("text", { class: "t end", x: 20, y: y(value) + 4 }, String(value)));
  for (let r = 0; r <= last; r++) if (r % Math.ceil(last / 8) === 0 || r === last)
    art.append(s("text", { class: "t mid", x: x(r), y: 128 },
      r === 0 ? "base" : r === last ? "end" : String(r)));
  const names = [];
  for (const { label: j, before: first, after: end, e } of list.toReversed()) {
    const role = j === appeal(i) ? "appeal" : j === verdict(i) ? "verdict" : "rival";
    let path = `M${x(0)} ${y(first / WHOLE)}`; // the rounds know candidates only
    for (let r = 0; e >= 0 && r < nRounds; r++)
      path += `L${x(r + 1)} ${y(rounds[r * entries + e] / 255)}`;
    art.append(s("path", { class: "s-" + role, d: path + `L${x(last)} ${y(end / WHOLE)}` }));
    names.push({ at: y(end / WHOLE), role, name: classes[j] });
  }
  names.sort((p, q) => p.at - q.at);
  names.forEach((each, k) => { if (k) each.at = Math.max(each.at, names[k - 1].at + 13); });
  names.toReversed().forEach((each, k, all) => {
    each.at = Math.min(each.at, k ? all[k - 1].at - 13 : 116);
  });
  for (const each of names) art.append(s("text", { class: "t c-" + each.role, x: 246,
    y: each.at + 4 }, cut(each.name, 18)));
  return art;
}
function near(i) {
  const list = h("ul", { class: "near" });
  for (let p = 0; p < nNear; p++) {
    const other = neighbors[i * nNear + p], d = decisions.get(other);
    list.append(h("li", {}, button({}, () => visit(other), thumb(other),
      said("span", "name", cut(nameOf(other))),
      said("span", d ? "done" : changed(other) ? "a" : "",
        d ? "✓ " + (d.label || "none") : cut(classes[appeal(other)])))));
  }
  return list;
}
function sayOutcome(i) {
  const says = h("p", { class: "says" }), label = (cls, j) => said("b", cls, cut(classes[j]));
  if (excluded(i)) says.append("Excluded by review: it was not learned from. Of its candidates " +
    "the model would take ", label("a", appeal(i)), ".");
  else if (outcomeOf(i) === UNANSWERED)
    says.append("Nobody answered; the likeliest label is ", label("a", appeal(i)), ".");
  else if (outcomeOf(i) === OUTSIDE)
    says.append(label("a", appeal(i)), " is outside the answers: nobody gave it.");
  else if (overturned(i)) {
    let round = nRounds;
    while (round > 1 && history[(round - 1) * n + i] === appeal(i)) round--;
    says.append(label("v", verdict(i)), " was overturned to ", label("a", appeal(i)),
      nRounds > 1 ? ` in round ${round}.` : ".");
  } else says.append(label("a", appeal(i)), contested(i) ? " was upheld." : " is the only candidate.");
  if (data.truth && data.truth[i] !== null)
    says.append(" Truth: ", said("b", "truth", cut(data.truth[i])), ".");
  if (data.groups && data.groups[i]) says.append(" Group: ", said("b", "", cut(data.groups[i])), ".");
  if (data.audit && data.audit.includes(i))
    says.append(" Drawn at random, to see how many labels are right.");
  return says;
}
function sayAnswers(i) {
  const list = answersOf(i);
  if (!list.length) return [];
  const parts = [h("h3", {}, "Who said what"), h("ul", { class: "answers" }, ...list.map((each) => {
    const person = data.annotators && data.annotators[each.person];
    const trust = person && person.reliability !== null && person.reliability !== undefined;
    return h("li", { class: each.label === appeal(i) ? "agrees" : null },
      said("span", "who", cut(answers.people[each.person], 40)), " ",
      said("b", "", cut(classes[each.label], 60)),
      trust ? h("span", { class: "tag" }, ` ${Math.round(100 * person.reliability)}% reliable`) : null);
  }))];
  if (votes) parts.push(votes[i] >= 0
    ? h("p", { class: "note" }, "Majority: ", said("b", "", cut(classes[votes[i]])), ".")
    : h("p", { class: "note" }, `No majority: tied ${tally(list)}.`));
  return parts;
}
function tally(list) { // of the labels that were given most often
  const counts = new Map();
  for (const { label } of list) counts.set(label, (counts.get(label) || 0) + 1);
  return [...counts.values()].sort((x, y) => y - x).join(" : ");
}
let places = null; // of every row in the order of suspicion, the most suspected first
function placeOf(i) {
  if (!places) {
    places = new Uint32Array(n);
    inOrder("suspicion").forEach((row, at) => { places[row] = at + 1; });
  }
  return places[i];
}
function saySuspicion(i) {
  if (!suspicion || outcomeOf(i) === UNANSWERED) return null;
  const them = votes ? "answers" : "candidates";
  if (data.suspicion_orders) return h("p", { class: "note" }, `Number ${count(placeOf(i))} of ` +
    `${count(n)} rows in the order of suspicion that none of the ${them} is true.`);
  return h("p", { class: suspected(i) ? "warning" : "note" },
    `None of the ${them}: ${percent(suspicion[i])}.`);
}
const likelyOutside = (i) => ranked(i).find((each) => each.e < 0);
function actions(i) {
  const d = decisions.get(i);
  const act = (key, word, more, go, pressed) => button({ "data-key": key,
    "aria-pressed": pressed === undefined ? null : pressed ? "true" : "false" },
  go, word, h("span", { class: "no".includes(key) ? "word soon" : "word" }, more), " ", h("kbd", {}, key));
  return h("div", { class: "review", role: "group", "aria-label": "Review" },
    act("a", overturned(i) ? "Accept" : "Confirm", overturned(i) ? " appeal" : "",
      () => choose(i, appeal(i)), Boolean(d && d.label === classes[appeal(i)])),
    overturned(i) ? act("v", "Keep", " verdict", () => choose(i, verdict(i)),
      Boolean(d && d.label === classes[verdict(i)])) : null,
    act("n", "None", " of these", () => decide(i, "none"), Boolean(d && d.kind === "none" && !d.label)),
    act("o", "Other", " label",
      () => askLabel(i), Boolean(d && d.label &&
        !ranked(i).some((each) => classes[each.label] === d.label))),
    d ? act("u", "Undo", "", () => takeBack(i)) : null);
}
function picture(i) {
  const source = data.images && data.images[i];
  if (!source) return null;
  const node = image(i, "picture", "Picture of " + cut(nameOf(i)));
  if (!node) return said("p", "note", "Not loaded, because it lies elsewhere: " + cut(source));
  node.addEventListener("click", () => node.classList.toggle("large"));
  node.addEventListener("error", () =>
    node.replaceWith(said("p", "note", "No picture found at " + cut(source))));
  return node;
}
function renderDetail() {
  const i = current, box = $("detail");
  if (i < 0) { box.replaceChildren(h("p", { class: "note" }, "No row.")); return; }
  const list = ranked(i), hidden = shownOf(i).length - list.length;
  const text = data.texts && data.texts[i];
  const back = trail.length ? button({ class: "back", "data-key": "b" }, () => goBack(),
    "← Back to ", said("span", "", cut(nameOf(trail.at(-1)), 40)), " ", h("kbd", {}, "b")) : null;
  box.replaceChildren(...[
    h("div", { class: "sheet-head" }, button({ class: "to-list" }, closeSheet, "← List"),
      button({ "aria-label": "Previous row" }, () => step(-1), "↑"),
      button({ "aria-label": "Next row" }, () => step(1), "↓")),
    back, h("div", { class: "about" }, picture(i), h("div", {}, said("h2", "", cut(nameOf(i))),
      sayOutcome(i), ...sayAnswers(i))),
    text ? h("div", { class: "text", dir: "auto", tabindex: 0, role: "region", "aria-label": "Text" },
      text) : null,
    h("h3", {}, "Candidates, ", h("span", { class: "v" }, "before"), " and ",
      h("span", { class: "a" }, "after"), " the appeal"),
    h("ul", { class: "cands" }, ...list.map((each, at) => candidate(i, each, at))),
    hidden > 0 ? h("p", { class: "note" }, `and ${count(hidden)} less likely candidates`) : null,
    saySuspicion(i), actions(i),
    ...(rounds && contested(i) ? [h("h3", {}, "Over the rounds"), drawRounds(i)] : []),
    ...(nNear ? [h("h3", {}, "Nearest rows and their labels"), near(i)] : []),
    ...(data.features ? [h("p", { class: "note" }, "Learned from ",
      said("span", "", [...data.features].sort((f, g) => (g.importance || 0) - (f.importance || 0)).slice(0, 8)
        .map((f) => f.name + (f.importance > 0 ? ` (${(100 * f.importance).toFixed(1)}%)` : "")).join(", ")),
      data.features.length > 8 ? ` and ${data.features.length - 8} more` : "", ".")] : []),
  ].filter(Boolean));
  box.scrollTop = 0;
}

// ---- a label outside the candidates --------------------------------------------------------
let asked = -1;
function askLabel(i) {
  asked = i;
  const likely = suspected(i) && likelyOutside(i);
  $("other-name").value = likely ? classes[likely.label] : "";
  $("other-row").textContent = cut(nameOf(i));
  if (!$("names").children.length) for (const name of classes.slice(0, 5000))
    $("names").append(h("option", { value: name }));
  $("other").showModal();
  $("other-name").select();
}
$("other-form").addEventListener("submit", (event) => {
  event.preventDefault(); // which would close later, and swallow the next key
  $("other").close();
  const name = $("other-name").value.normalize("NFC").trim();
  if (!name) return;
  if (candidatesOf(asked).includes(name)) choose(asked, classOf.get(name));
  else decide(asked, "none", name);
});

// ---- on a small screen a row is a sheet over the list ----------------------------------------
function openSheet() {
  document.documentElement.classList.add("sheet");
  for (const id of ["top", "controls", "table", "numbers"]) $(id).inert = true;
  $("detail").focus({ preventScroll: true });
}
function closeSheet() {
  document.documentElement.classList.remove("sheet");
  for (const id of ["top", "controls", "table", "numbers"]) $(id).inert = false;
  table.focus({ preventScroll: true });
}
narrow.addEventListener("change", () => {
  if (document.documentElement.classList.contains("sheet")) closeSheet();
});
