// ---- Overview: how many labels are correct, what review is worth, where to look -------------------------
const PADDING = 36; // of a card, left and right
const BAR = 0.9; // confidence from which rows may be accepted together
const isOpen = (i) => !decisions.has(i) && !excluded(i);
function standing() { // labels that count, and how many of them are correct, as expected
  let rows = 0, correct = 0;
  for (let i = 0; i < n; i++) {
    if (isExcluded(i)) continue;
    rows++;
    correct += isSeen(i) ? 1 : confidence[i] / WHOLE;
  }
  return { rows, correct };
}
const correctBy = (value) => Math.round(value);
function sayCorrect() {
  const { rows, correct } = standing();
  return `About ${count(correctBy(correct))} of your ${plural(rows, "label")} are correct.`;
}
// Rows in the order in which review goes through them: the suggested first, then the least confident.
const reviewOrder = () => inOrder("review").filter(isOpen);
const stepSize = (open) => {
  const suggested = data.suggested.filter(isOpen).length;
  return suggested || Math.min(100, open);
};
function headline(order, now) {
  const step = stepSize(order.length), gain = expectedWrong([...order.slice(0, step)]);
  if (!calibrated) return [h("h1", {}, compared
    ? `${count(summary.overturned)} of ${plural(summary.contested, "label")} changed.`
    : `${count(summary.differing)} of ${plural(summary.contested, "label")} differ from the majority vote.`),
  h("p", { class: "note" }, "The confidences of this method are not calibrated, so the page does not " +
    "estimate how many labels are correct.")];
  const then = correctBy(now.correct + gain);
  return [h("h1", {}, h("span", {}, sayCorrect()), " ", h("span", {}, !step ? "Every row is reviewed."
    : then > correctBy(now.correct) ? `Check ${plural(step, "row")} and it is about ${count(then)}.`
      : `Checking ${plural(step, "more row")} would change little.`))];
}
function sayTooSure() { // where the true labels are known, confidences can be checked
  let expected = 0, spread = 0, hits = 0, rows = 0;
  for (let i = 0; data.truth && i < n; i++) {
    if (data.truth[i] === null || settled.has(i)) continue;
    const p = confidence[i] / WHOLE;
    rows++;
    expected += p;
    spread += p * (1 - p);
    hits += data.truth[i] === classes[finalOf(i)];
  }
  const off = (expected - hits) / Math.max(rows, 1);
  if (!calibrated || Math.abs(off) < 0.02 || Math.abs(expected - hits) < 3 * Math.sqrt(spread)) return "";
  return `The confidences are too ${off > 0 ? "high" : "low"}: they expect ${((100 * expected) / rows).toFixed(1)} % ` +
    `of these rows to be correct, and ${((100 * hits) / rows).toFixed(1)} % are.`;
}
function startButtons(order) {
  const left = data.suggested.filter(isOpen).length, step = stepSize(order.length);
  const time = minutesFor(step), sure = sureRows(BAR * WHOLE);
  const begin = left || !data.suggested.length ? { view: "review", show: QUEUE }
    : { view: "review", show: "open", order: "confidence-up" };
  return h("div", { class: "buttons" },
    step ? h("a", { class: "button primary", id: "begin", href: linkTo(begin) },
      left < data.suggested.length && left ? "Continue review" : "Start review", " ",
      h("small", {}, plural(step, "row") + (time ? ", " + time : ""))) : null,
    calibrated && sure.length ? button({ id: "accept-button", "aria-haspopup": "dialog" }, openAccept,
      `Accept ${plural(sure.length, "row")} from ${BAR.toFixed(2)} up `,
      h("small", {}, `about ${count(Math.round(expectedWrong(sure)))} wrong`)) : null);
}
function curveCard(order, now) {
  const left = new Float64Array(order.length + 1);
  left[0] = now.rows - now.correct;
  order.forEach((i, k) => { left[k + 1] = left[k] - 1 + confidence[i] / WHOLE; });
  const step = stepSize(order.length), tell = (v) => (v < 9.95 ? Math.max(0, v).toFixed(1) : count(Math.round(v)));
  const marks = [[0, `now: ${tell(left[0])}`]];
  if (step) marks.push([step, `${plural(step, "row")}: ${tell(left[step])} left`]);
  const box = h("section", { class: "card", "aria-labelledby": "curve-title" },
    h("h2", { id: "curve-title" }, "What review is worth"),
    h("p", { class: "note" }, "Expected wrong labels left, by rows reviewed" +
      (data.suggested.length ? ": the suggested rows first, then the least confident." : ", the least confident first.")));
  box.append(drawCurve(left, marks, Math.max(260, $("curve").clientWidth - 34)));
  return box;
}
function countCells(of) { // first labels, or answers, by the label as it stands
  const cells = new Map(), add = (r, c) => {
    if (r >= 0) cells.set(r * classes.length + c, (cells.get(r * classes.length + c) || 0) + 1);
  };
  for (let i = 0; i < n; i++) {
    const label = labelNow(i);
    if (!answers) { add(label, firstOf(i)); continue; }
    for (let k = answers.starts[i]; k < answers.starts[i + 1]; k++)
      if (of === undefined || answers.person[k] === of) add(label, answers.label[k]);
  }
  return cells;
}
function matrixCard() {
  const cells = countCells(), { shown, all } = mostMixed(cells, $("matrix").clientWidth - PADDING), given = answers ? answers.label.length : 0;
  return [h("h2", { id: "matrix-title" }, answers ? "Which labels annotators mix up" : "What changed"),
    h("p", { class: "note" }, answers ? `Final label (rows) and the ${count(given)} answers (columns). A number lists its rows.`
      : "Final label (rows) and first label (columns). A number lists its rows."),
    drawMatrix({ cells, shown, rowWord: "final label", columnWord: answers ? "answer" : "first label",
      unit: answers ? "answer" : "row",
      list: (r, c) => goTo({ view: "labels", final: r, [answers ? "said" : "first"]: c }) }),
    all > shown.length ? h("p", { class: "note" }, `The ${shown.length} of ${all} labels that are mixed up most.`) : null];
}
function worstPair() { // the two labels that are mixed up most
  const sums = new Map();
  for (const [key, value] of countCells()) {
    const r = Math.floor(key / classes.length), c = key % classes.length;
    if (r !== c) {
      const pair = Math.min(r, c) * classes.length + Math.max(r, c);
      sums.set(pair, (sums.get(pair) || 0) + value);
    }
  }
  let best = -1;
  for (const [pair, value] of sums) if (best < 0 || value > sums.get(best)) best = pair;
  return best < 0 ? null : [Math.floor(best / classes.length), best % classes.length];
}
function histogramCard() {
  const inParts = (parts) => Array.from({ length: parts }, (_, k) => ({ low: k / parts, high: (k + 1) / parts, rows: 0 }));
  const fine = inParts(20);
  let below = 0, wrong = 0, sure = 0, right = 0;
  for (let i = 0; i < n; i++) {
    if (isExcluded(i)) continue;
    fine[Math.min(19, Math.floor((confidence[i] * 20) / WHOLE))].rows++;
    if (confidence[i] < BAR * WHOLE) { below++; wrong += isSeen(i) ? 0 : 1 - confidence[i] / WHOLE; }
    else if (data.truth && data.truth[i] !== null) { sure++; right += data.truth[i] === classes[finalOf(i)]; }
  }
  const coarse = inParts(10);
  fine.forEach((bin, k) => { coarse[k >> 1].rows += bin.rows; });
  const bins = haveRoom(fine, $("histogram").clientWidth - PADDING) ? fine : coarse;
  const list = (from, to) => goTo({ view: "labels", order: "confidence-up", low: from ? bins[from].low.toFixed(2) : "",
    high: to < bins.length - 1 ? bins[to].high.toFixed(2) : "" });
  return [h("h2", { id: "histogram-title" }, "How confident"),
    h("p", { class: "note" }, "Rows by confidence in the final label. A bar lists its rows; drag over several."),
    drawHistogram(bins, list, BAR),
    h("p", {}, `${plural(below, "row")} below ${BAR.toFixed(2)}` +
      (calibrated ? `; about ${count(Math.round(wrong))} of their labels are wrong.` : ".")),
    sure ? h("p", { class: "note" }, `Compared with the true labels: of the ${plural(sure, "row")} from ` +
      `${BAR.toFixed(2)} up, ${((100 * right) / sure).toFixed(1)} % are correct.`) : null];
}
function waysIn() {
  const pair = worstPair(), random = (data.audit || []).length;
  const ways = [["suggested", "Suggested", "doubtful rows, spread over the labels" + (random ? `; ${random} at random` : "")]];
  if (votes) ways.push(["tied", "Tied votes", "no majority; the model decides"],
    ["against", "Against the majority", "most annotators gave another label"],
    ["outside", "Outside the answers", "nobody gave the final label"]);
  else ways.push(["changed", "Changed", "the final label differs from the first label"],
    ["close", "Close calls", "two labels are almost equally likely"],
    summary.suspected ? ["suspected", "Label may be missing", "none of the candidates may be true"]
      : ["low", "Low confidence", "the final label has less than 0.50"]);
  if (pair) ways.push(["", `${cut(classes[pair[0]], 30)}, ${cut(classes[pair[1]], 30)}`, "the two labels that are mixed up most"]);
  ways.push(answers ? ["agreed", "Never in doubt", "all answers agree"] : ["single", "Never in doubt", "one candidate"]);
  const line = ([show, name, reason]) => {
    const rows = show ? sizeOf(show) : pairRows(pair);
    const words = [h("span", { class: "way-name", dir: "auto" }, name), h("b", {}, count(rows)),
      h("span", { class: "note" }, reason)];
    const wanted = show ? { view: "review", show, ...(show === "close" && { order: "margin-up" }) }
      : { view: "review", show: "pair", first: pair[0], final: pair[1] };
    return h("li", {}, rows ? h("a", { class: "way", "data-show": show || "pair", href: linkTo(wanted) }, ...words)
      : h("span", { class: "way" }, ...words));
  };
  return [h("h2", { id: "ways-title" }, "Where to look"), h("ul", { class: "ways" }, ...ways.map(line))];
}
// Rows with either of two labels now, and the other one as an answer or as the first label.
function isPair(i, a, b) {
  const label = labelNow(i);
  if (label !== a && label !== b) return false;
  const other = label === a ? b : a;
  return answers ? gave(i, -1, other) : firstOf(i) === other;
}
function pairRows(pair) {
  let found = 0;
  for (let i = 0; i < n; i++) found += isPair(i, ...pair);
  return found;
}
views.overview = () => {
  const order = reviewOrder(), now = standing();
  $("headline").replaceChildren(...headline(order, now));
  $("begin-box").replaceChildren(startButtons(order));
  $("too-sure").textContent = sayTooSure();
  $("too-sure").hidden = !$("too-sure").textContent;
  const audit = sayAudit();
  $("overview-audit").textContent = audit;
  $("overview-audit").hidden = !audit;
  if (calibrated) $("curve").replaceChildren(curveCard(order, now));
  $("curve").hidden = !calibrated;
  for (const [id, parts] of [["matrix", matrixCard()], ["histogram", histogramCard()], ["ways", waysIn()]])
    $(id).replaceChildren(...parts.filter(Boolean));
};

// ---- accepting many rows together ---------------------------------------------------------------------------
function openAccept() {
  $("accept-bar").value = BAR.toFixed(2);
  tellAccept();
  $("accept").showModal();
}
function tellAccept() {
  const least = Number($("accept-bar").value), ok = least >= 0.5 && least <= 1;
  const rows = ok ? sureRows(Math.round(least * WHOLE)) : [];
  $("accept-tells").textContent = !ok ? "Enter a confidence from 0.50 to 1."
    : `${plural(rows.length, "row")} ${rows.length === 1 ? "has" : "have"} a confidence of ${least.toFixed(2)} or more. ` +
      `About ${count(Math.round(expectedWrong(rows)))} of these labels are wrong.`;
  $("accept-go").textContent = `Accept ${plural(rows.length, "row")}`;
  $("accept-go").disabled = !rows.length;
  return rows;
}
$("accept-bar").addEventListener("input", tellAccept);
$("accept-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const rows = tellAccept();
  $("accept").close();
  acceptAll(rows);
});
