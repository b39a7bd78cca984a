// ---- Review: one row at a time --------------------------------------------------------------------
const MOST = 60; // labels shown
function ranked(i) {
  return shownOf(i).sort((x, y) => y.after - x.after || y.before - x.before).slice(0, MOST);
}
let ended = false, truthShown = false;
const skipped = new Set();
const queue = makeList($("queue"), $("queue-spacer"), $("queue-rows"), { id: "q-",
  shape: () => ({ line: lengthOf("--queue-row"), across: 1, head: 0 }), make: queueRow });
function queueRow(at) {
  const i = view[at], d = decisions.get(i), text = textOf(i);
  const node = h("div", { class: "q" + (d ? (d.label ? " decided" : " decided gone") : "") + (awaited.has(nameOf(i)) ? " unsaved" : ""), role: "option", id: "q-" + i,
    "aria-selected": i === current && !ended ? "true" : "false", "aria-setsize": view.length,
    "aria-posinset": at + 1 }, thumb(i),
  h("span", { class: "q-what", dir: "auto" },
    text ? h("span", { class: "q-text" }, ...marked(text, wantedText(), 60)) : null,
    h("span", { class: "q-label" }, d ? (d.label ? "✓ " : "✗ ") : "",
      cut(d ? d.label || "not usable" : classes[finalOf(i)], 60)),
    text ? null : h("span", { class: "q-conf" }, d ? "" : percent(confidence[i]))));
  node.addEventListener("click", () => select(i));
  return node;
}
function nextOpen(from) { // the next row to decide, after a place and then from the start
  const open = (i) => !decisions.has(i) && !skipped.has(i), at = view.indexOf(from);
  for (let k = at + 1; k < view.length; k++) if (open(view[k])) return view[k];
  for (let k = 0; k < at; k++) if (open(view[k])) return view[k];
  return -1;
}
function select(i, shown = true) {
  current = i;
  ended = false;
  state.row = i;
  writeAddress(false);
  if (shown && i >= 0) queue.reveal(view.indexOf(i));
  queue.draw(true);
  renderItem(false);
  showStatus();
}
function finish() { // nothing is left in the queue
  ended = true;
  state.row = -1;
  writeAddress(false);
  queue.draw(true);
  renderItem(false);
  showStatus();
}
function step(by) {
  if (!view.length) return;
  const from = trail.length ? trail[0] : current;
  trail = [];
  const at = view.indexOf(from);
  select(view[Math.min(view.length - 1, Math.max(0, ended ? view.length - 1 : at + by))]);
}
function moveOn(i) {
  skipped.delete(i);
  const next = nextOpen(i);
  if (next < 0) finish(); else select(next);
}
function skip() {
  if (current < 0 || ended) return;
  skipped.add(current);
  say(`Skipped ${cut(nameOf(current), 60)}`);
  const next = nextOpen(current);
  if (next < 0) finish(); else select(next);
}
function reach(i) { // a row that may not be listed
  trail = [];
  if (!view.includes(i) && current >= 0 && !ended) trail.push(current);
  select(i);
}
function visit(i) { // a neighbour: filters stay, and there is a way back
  trail.push(current);
  select(i);
  $("item").focus({ preventScroll: true });
}
function goBack() { if (trail.length) select(trail.pop()); }
views.review = () => {
  filterRows();
  countQueue();
  skipped.clear();
  $("queue-name").textContent = sayFilter();
  $("as-list").href = addressFor({ ...state, view: "labels" });
  $("queue").scrollTop = 0;
  queue.size();
  const wanted = state.row >= 0 ? state.row : view.find((i) => !decisions.has(i));
  if (wanted !== undefined) select(wanted); else { current = -1; finish(); }
};
function sayProgress() {
  if (state.view !== "review") return `${count(decisions.size)} of ${count(n)} reviewed`;
  const { done, moved } = progress;
  $("done").style.width = (100 * done) / Math.max(view.length, 1) + "%";
  const { rows, hits } = auditSoFar(), left = minutesFor(view.length - done);
  $("pace").textContent = [left && done < view.length ? left + " left at your pace" : "",
    done ? plural(moved, "label") + " changed" : "",
    rows ? `audit: ${hits} of ${rows} correct` : ""].filter(Boolean).join(" · ");
  return `${count(done)} of ${count(view.length)}`;
}

// ---- the question and its answers --------------------------------------------------------------------
function sayWho(i, label) { // who gave an answer, the most reliable first
  const all = answersOf(i), mine = all.filter((each) => each.label === label);
  if (!all.length) return "";
  if (!mine.length) return "nobody said so";
  const trust = (each) => (data.annotators && data.annotators[each.person] || {}).reliability;
  const names = mine.sort((x, y) => (trust(y) ?? 0) - (trust(x) ?? 0)).slice(0, 4).map((each) =>
    cut(answers.people[each.person], 24) + (trust(each) != null ? ` ${Math.round(100 * trust(each))}\u00a0%` : ""));
  return `${mine.length} of ${all.length} said so: ${names.join(", ")}` +
    (mine.length > 4 ? ` and ${mine.length - 4} more` : "");
}
const LARGE = 4; // candidates with a bar, if there are more than one more
function candidate(i, each, at, all) {
  const j = each.label, d = decisions.get(i), final = j === finalOf(i);
  const first = compared && differs(i) && j === firstOf(i);
  const tags = [sayWho(i, j), first && "first label",
    each.e < 0 && (votes ? answers ? "" : "nobody's answer" : "not a candidate"),
    truthShown && data.truth && data.truth[i] === classes[j] && "true label"].filter(Boolean).join(", ");
  return h("li", { class: all.length > LARGE + 1 && at >= LARGE ? "less" : null }, button({ title: tags || null, "data-key": at < 9 ? String(at + 1) : null,
    "data-role": final ? "final" : first ? "first" : null,
    class: final ? "final" : null, "aria-pressed": d && d.label === classes[j] ? "true" : "false" },
  () => choose(i, j), at < 9 ? h("kbd", {}, String(at + 1)) : h("span", {}),
  h("span", { class: "what" }, said("span", "name", cut(classes[j])),
    tags ? said("span", "tag", tags) : null),
  bar(each.after / WHOLE, "f-appeal", compared && data.first ? each.before / WHOLE : undefined),
  h("span", { class: "share" }, finer(each.after))));
}
function sayOutcome(i) {
  const says = h("p", { class: "says" }), b = (cls, j) => said("b", cls, cut(classes[j]));
  if (excluded(i)) says.append("An earlier review excluded this row: the model did not learn from it.");
  else if (settled.has(i)) says.append("An earlier review decided this row.");
  else if (outcomeOf(i) === UNANSWERED) says.append("Nobody answered; ", b("a", finalOf(i)), " is the likeliest label.");
  else if (outcomeOf(i) === OUTSIDE) says.append(b("a", finalOf(i)), " is outside the answers: nobody gave it.");
  else if (compared && changed(i)) {
    let round = nRounds;
    while (round > 1 && history[(round - 1) * n + i] === finalOf(i)) round--;
    says.append("The first label ", b("v", firstOf(i)), " was changed to ", b("a", finalOf(i)),
      nRounds > 1 ? ` in round ${round}.` : ".");
  } else if (compared && contested(i)) says.append("The first label is unchanged.");
  else if (!contested(i)) says.append("The row has one candidate.");
  if (votes) {
    const list = answersOf(i);
    if (votes[i] >= 0 && votes[i] !== finalOf(i)) says.append(" Majority: ", b("", votes[i]), ".");
    else if (votes[i] < 0 && list.length) says.append(` The votes are tied ${tally(list)}.`);
  }
  if (data.groups && data.groups[i]) says.append(" Group: ", said("b", "", cut(data.groups[i])), ".");
  if (isAudit.has(i)) says.append(" Drawn at random for the audit.");
  return says;
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
  if (suspicion[i] < 100) return null;
  return h("p", { class: suspected(i) ? "warning" : "note" },
    `None of the ${them} is true: ${finer(suspicion[i])}.`);
}
function sayTruth(i) {
  if (!data.truth) return null;
  if (!truthShown) return h("p", { class: "note" }, "The true label is hidden while you review. ",
    button({ class: "small", "data-key": "t" }, showTruth, "Show ", h("kbd", {}, "t")));
  return h("p", { class: "note" }, "True label: ",
    said("b", "truth", data.truth[i] === null ? "not known" : cut(data.truth[i])), ". ",
    button({ class: "small", "data-key": "t" }, showTruth, "Hide ", h("kbd", {}, "t")));
}
function showTruth() {
  if (!data.truth) return;
  truthShown = !truthShown;
  renderItem(true);
}

// ---- why this label -----------------------------------------------------------------------------------
let rather = -1; // the label that the final one is compared with, if the reader chose one
const fetched = new Map(); // by row: what the server explained, or the words for why it did not
const whyOf = (i) => (data.why && data.why[i]) || (typeof fetched.get(i) === "object" ? fetched.get(i) : null);
function askWhy(i) { // once the reader stays on the row
  setTimeout(async () => {
    if (current !== i || ended || fetched.has(i)) return;
    fetched.set(i, "");
    try {
      const answer = await request("why?" + encodeURIComponent(nameOf(i)), {}, 120000);
      fetched.set(i, answer.ok ? await answer.json() : (await answer.text()).trim());
    } catch { fetched.delete(i); return; } // the next visit asks again
    if (current === i && !ended && state.view === "review") renderItem(true);
  }, 150);
}
function noWhy(i) { // a row whose sum is not in the file
  if (!data.why || settled.has(i) || !contested(i)) return null;
  const told = [];
  if (server && server.explains) {
    if (!fetched.has(i)) askWhy(i);
    told.push(fetched.get(i) || "The server is asked for the explanation.");
  } else told.push(`The page explains ${plural(Object.values(data.why).filter(Boolean).length, "row")} of ${count(n)}; ` +
    "this row is not one of them. ", server ? "" : h("span", {}, "Open the page with ", h("code", {}, "appellate serve"), ", or "),
  server ? "Call " : "call ", h("code", { dir: "ltr" }, `run.explain(${JSON.stringify(cut(nameOf(i), 60))})`), " in Python.");
  return h("section", { class: "card why", "aria-labelledby": "why-title" },
    h("h2", { id: "why-title" }, "Why ", said("span", "a", cut(classes[finalOf(i)], 60))), h("p", { class: "note" }, ...told));
}
function why(i) {
  const found = whyOf(i);
  if (!found) return noWhy(i);
  const mine = found.labels.indexOf(finalOf(i)), others = found.labels.filter((j) => j !== finalOf(i));
  if (mine < 0 || !others.length) return null;
  const against = others.includes(rather) ? rather : others[0], other = found.labels.indexOf(against);
  const lines = found.parts.map(({ name, values, annotator }) =>
    ({ name, annotator, value: values[mine] - values[other] }));
  const sum = lines.reduce((total, each) => total + each.value, 0);
  const most = Math.max(1, Math.abs(sum), ...lines.map((each) => Math.abs(each.value)));
  const called = ({ name, annotator }) => (annotator === undefined || !people.length ? cut(name, 80)
    : h("a", { href: linkTo({ view: "people", person: annotator }), title: "Answers of this annotator" }, cut(name, 80)));
  const row = (each, cls, value = each.value) => h("tr", { class: cls, "data-value": String(value) },
    h("th", { scope: "row", dir: "auto" }, called(each)), h("td", { class: "signed" }, signedBar(value / most, cls)),
    h("td", { class: "num", title: String(value) }, signed(value)));
  const choice = h("select", { "aria-label": "Compared with", "data-key": "rather" },
    ...others.map((j) => h("option", { value: j, selected: j === against ? "" : null }, cut(classes[j], 60))));
  choice.addEventListener("change", () => { rather = Number(choice.value); renderItem(true); });
  return h("section", { class: "card why", "aria-labelledby": "why-title" },
    h("h2", { id: "why-title" }, "Why ", said("span", "a", cut(classes[finalOf(i)], 60)), " rather than ",
      others.length > 1 ? choice : said("span", "", cut(classes[against], 60))),
    h("p", { class: "note" }, "Right: for it. Left: against it. The parts add up.",
      sum < -1e-6 ? " The sum is against it here: a setting decided, such as a cost of wrong labels, or only labels that somebody gave." : ""),
    h("table", {}, h("tbody", {}, ...lines.map((each) => row(each, "")),
      row({ name: "together", value: sum }, "sum"))), members(found, mine, other, [finalOf(i), against]));
}
let membersOpen = false;
function members(found, mine, other, pair) { // what the members of a jury say of two labels
  if (!found.members || !data.members) return null;
  const said_ = found.members.map((shares) => [shares[mine], shares[other]]);
  const agree = said_.filter(([x, y]) => x > y).length;
  const box = h("details", membersOpen ? { open: "" } : {}, h("summary", {},
    `${agree} of ${plural(said_.length, "member")} ${agree === 1 ? "prefers" : "prefer"} `, said("span", "a", cut(classes[pair[0]], 40))),
  h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "member"), h("th", { scope: "col", class: "num" }, "weight"),
    ...pair.map((j) => h("th", { scope: "col", class: "num", dir: "auto", title: classes[j] }, cut(classes[j], 8))))),
  h("tbody", {}, ...data.members.map(({ name, weight }, k) => h("tr", {}, h("th", { scope: "row" }, name),
    h("td", { class: "num" }, weight.toFixed(2)),
    ...said_[k].map((share) => h("td", { class: "num", title: String(share) }, share.toFixed(2))))))));
  box.addEventListener("toggle", () => { membersOpen = box.open; });
  return box;
}
const signed = (value) => (Math.abs(value) < 0.05 ? "0.0"
  : (value < 0 ? "−" : "+") + Math.abs(value).toFixed(1));
function signedBar(share, cls) {
  const width = Math.max(0.8, Math.abs(share) * 49);
  return s("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    s("rect", { class: cls === "sum" ? "f-ink" : share < 0 ? "f-verdict" : "f-appeal", height: 10,
      width, x: share < 0 ? 50 - width : 50 }),
    s("line", { class: "axis", x1: 50, x2: 50, y1: 0, y2: 10 }));
}

// ---- similar rows, and what changed over the rounds ---------------------------------------------------
function near(i) {
  const found = whyOf(i) && whyOf(i).neighbours;
  const list = found && found.length ? found : Array.from({ length: nNear }, (_, p) => [neighbors[i * nNear + p]]);
  if (!list.length) return null;
  return h("section", { "aria-labelledby": "near-title" },
    h("h2", { id: "near-title" }, list[0].length > 1 ? "Most similar rows: their labels and weights"
      : "Most similar rows and their labels"),
    h("ul", { class: "near" + (data.texts ? " lines" : "") }, ...list.map(([other, weight]) => {
      const d = decisions.get(other), label = d ? d.label || "not usable" : classes[finalOf(other)];
      return h("li", {}, button({ title: nameOf(other) }, () => visit(other), thumb(other),
        h("span", { class: "near-what" },
          said("span", (d ? "done" : labelNow(other) === finalOf(i) ? "a" : "") + " near-label",
            (d ? "✓ " : "") + cut(label, 60)),
          said("span", "near-name", textOf(other) ? cut(textOf(other), 160) : cut(nameOf(other), 60)),
          weight === undefined ? null : h("span", { class: "tag", title: "weight in the score of this row" },
            weight.toFixed(2)))));
    })));
}
function drawRounds(i) { // ends where the bars end, its lines are named
  const list = ranked(i).slice(0, 8), last = nRounds + 1;
  const x = (r) => 24 + (r * 216) / last, y = (value) => 112 - value * 100;
  const art = s("svg", { class: "rounds", viewBox: "0 0 360 132", role: "img",
    "aria-label": "Confidence in each label: at first, after every round, and in the end: " +
      list.map((each) => `${classes[each.label]} ${finer(each.before)} to ${finer(each.after)}`).join(", ") });
  for (const value of [0, 0.5, 1]) art.append(
    s("line", { class: "grid-line", x1: 24, x2: 240, y1: y(value), y2: y(value) }),
    s("text", { class: "t end", x: 20, y: y(value) + 4 }, String(value)));
  for (let r = 0; r <= last; r++) if (r % Math.ceil(last / 8) === 0 || r === last)
    art.append(s("text", { class: "t mid", x: x(r), y: 128 },
      r === 0 ? "first" : r === last ? "final" : String(r)));
  const names = [];
  for (const { label: j, before: first, after: end, e } of list.toReversed()) {
    const role = j === finalOf(i) ? "appeal" : j === firstOf(i) ? "verdict" : "rival";
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
  return h("details", {}, h("summary", {}, "Confidence over the rounds"), art);
}

// ---- the row ---------------------------------------------------------------------------------------------
function picture(i) {
  const source = data.images && data.images[i];
  if (!source) return null;
  const node = image(i, "picture", "Image of " + cut(nameOf(i)));
  if (!node) return said("p", "note", "Not loaded, because it is stored elsewhere: " + cut(source));
  node.addEventListener("error", () =>
    node.replaceWith(said("p", "note", "No image found at " + cut(source))));
  return node;
}
let drawnRow = -1;
function renderItem(again) { // `again`: the same row; it stays where it was scrolled to
  const i = current, item = $("item"), ask = $("ask");
  const active = document.activeElement, key = active && ask.contains(active) && active.dataset.key;
  root.classList.toggle("ended", ended);
  $("end").hidden = !ended;
  if (ended) { renderEnd(); return; }
  if (i < 0) return;
  const text = textOf(i), list = ranked(i), hidden = shownOf(i).length - list.length, note = notes.get(i);
  const label = classes[finalOf(i)], d = decisions.get(i), at = view.indexOf(i);
  $("place").textContent = at < 0 ? "not in this list" : `${count(at + 1)} of ${count(view.length)}`;
  if (drawnRow !== i || !again) {
    item.replaceChildren(...[
      trail.length ? button({ class: "back", "data-key": "b" }, goBack, "← Back to ",
        said("span", "", cut(nameOf(trail.at(-1)), 40)), " ", h("kbd", {}, "b")) : null,
      h("h2", { dir: "auto" }, ...marked(cut(nameOf(i)), wantedText())),
      h("div", { class: "shown" + (text ? " with-text" : "") }, picture(i), text ? h("div", { class: "text",
        dir: "auto", tabindex: 0, role: "region", "aria-label": "Text" }, ...marked(text, wantedText())) : null,
      !text && !(data.images && data.images[i]) ? h("p", { class: "note" },
        "This row has no text and no image. Name a column with --text or --image to see it here.") : null),
    ].filter(Boolean));
    item.scrollTop = 0;
    rather = drawnRow === i ? rather : -1;
  }
  $("similar").replaceChildren(...[near(i), rounds && contested(i) ? drawRounds(i) : null].filter(Boolean));
  ask.replaceChildren(...[
    h("h1", { title: label }, "Is ", said("span", "a", cut(label, 80)), " correct?"),
    h("ul", { class: "cands", "aria-label": "Labels" }, ...list.map((each, k) => candidate(i, each, k, list))),
    hidden > 0 ? h("p", { class: "note" }, `and ${count(hidden)} less likely candidates`) : null, why(i),
    compared && data.first ? h("p", { class: "tag" }, `Bar: confidence. Tick: first labels (${data.first}).`) : null,
    sayOutcome(i), saySuspicion(i), sayTruth(i),
    note ? h("p", { class: "note" }, "Note: ", said("b", "", note)) : null,
  ].filter(Boolean));
  $("keep-first").disabled = !differs(i);
  const named = Boolean(d && d.label && !list.some((each) => classes[each.label] === d.label));
  $("act-o").setAttribute("aria-pressed", String(named));
  $("act-n").setAttribute("aria-pressed", String(Boolean(d && !d.label)));
  $("act-m").setAttribute("aria-pressed", String(Boolean(note)));
  if (drawnRow !== i) {
    $("panel").scrollTop = 0;
    ask.scrollTop = 0;
    if (narrow.matches) scrollTo(0, 0);
  }
  drawnRow = i;
  if (key) (ask.querySelector(`[data-key="${key}"]`) || $("panel")).focus({ preventScroll: true });
}
const narrow = matchMedia("(max-width: 48rem)");

// ---- after the last row -----------------------------------------------------------------------------------
function renderEnd() {
  const done = [...view].filter((i) => decisions.has(i)), seen = done.filter(isSeen);
  const moved = seen.filter((i) => decisions.get(i).label && decisions.get(i).label !== classes[finalOf(i)]);
  const gone = seen.filter((i) => !decisions.get(i).label), open = view.length - done.length;
  const audit = sayAudit();
  const list = h("ul", { class: "moved" }, ...moved.slice(0, 8).map((i) => h("li", {},
    button({ class: "small" }, () => select(i), said("span", "", cut(nameOf(i), 40))), " ", labelLine(i))));
  const rest = inOrder("confidence-up").filter((i) => !decisions.has(i)).length;
  $("end").replaceChildren(...[
    h("h1", {}, !view.length ? "No row matches." : open
      ? `${plural(open, "row")} left, which you skipped.`
      : `${plural(seen.length, "row")} reviewed: ${plural(moved.length, "label")} changed.`),
    seen.length ? h("p", {}, [gone.length ? `${plural(gone.length, "row")} not usable. ` : "",
      done.length > seen.length ? `${plural(done.length - seen.length, "row")} accepted together. ` : "",
      calibrated ? sayCorrect() : ""].join("")) : null,
    audit ? h("p", { id: "audit" }, audit) : null,
    moved.length ? h("h2", {}, "What you changed") : null, moved.length ? list : null,
    moved.length > 8 ? h("p", { class: "note" }, `and ${count(moved.length - 8)} more`) : null,
    decisions.size ? h("h2", {}, "Run again with your decisions") : null,
    decisions.size ? again() : null,
    h("p", { class: "buttons" },
      open ? button({ class: "primary" }, () => { skipped.clear(); select(nextOpen(-1)); },
        `Look at the ${count(open)} skipped`) : null,
      rest ? h("a", { class: "button" + (open ? "" : " primary"), href: linkTo({ view: "review", show: "open", order: "confidence-up" }) },
        "Review more, the least confident first") : null,
      h("a", { class: "button", href: linkTo({ view: "overview" }) }, "Overview")),
  ].filter(Boolean));
  $("end").focus({ preventScroll: true });
}
function again() { // the command that takes the decisions into account
  const command = data.command || 'run = run.decide("decisions.csv")';
  const line = h("code", { id: "command", dir: "ltr" }, command);
  return h("div", { class: "again" },
    server ? null : h("p", { class: "note" }, "Export decisions.csv first. ",
      button({ class: "small" }, () => exportFile("decisions.csv"), "Export decisions.csv")),
    h("div", { class: "command" }, line, button({ id: "copy" }, async () => {
      try {
        await navigator.clipboard.writeText(command);
        say("Copied.");
      } catch {
        getSelection().selectAllChildren(line);
        say("Selected: copy it with your keyboard.");
      }
    }, "Copy")));
}

// ---- dialogs: a label outside the candidates, a note ----------------------------------------------------
let asked = -1;
function askLabel(i) {
  if (i < 0 || ended) return;
  asked = i;
  const likely = suspected(i) && ranked(i).find((each) => each.e < 0);
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
function askNote(i) {
  if (i < 0 || ended) return;
  asked = i;
  $("note-text").value = notes.get(i) || "";
  $("note-row").textContent = cut(nameOf(i));
  $("note").showModal();
  $("note-text").focus();
}
$("note-form").addEventListener("submit", (event) => {
  event.preventDefault();
  $("note").close();
  writeNote(asked, $("note-text").value.normalize("NFC").trim());
});
