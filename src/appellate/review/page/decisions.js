// ---- decisions: shown at once, kept by the browser until the server has them ----------------
const decisions = new Map(); // row -> {kind, label, time, unseen}
const notes = new Map(); // row -> text
const shelf = "appellate:" + (server ? server.folder : location.pathname) + ":";
const unsaved = new Map(); // key -> record, the earliest first
const strays = []; // records of another version of the table, which mean no row of this one
const made = []; // lists of rows decided here at once, the latest last
const MOST_SENT = 200; // decisions in one request
let trouble = "", refused = "", forgetful = false, sending = false, sent = false, retry = 0, since = 0, serial = 0;

function newKey(start) { // in the order of time; no spreadsheet takes it for a number
  const random = crypto.getRandomValues(new Uint32Array(2));
  return start + Date.now().toString(36).padStart(9, "0") +
    (serial++).toString(36).padStart(4, "0") + [...random].map((r) => r.toString(36)).join("");
}
const SEEN = "d", UNSEEN = "b"; // how the key of a decision begins
const makeRecord = (i, kind, label, start = SEEN) => ({ id: nameOf(i), decision: kind, label,
  time: new Date().toISOString(), candidates: candidatesOf(i).join(data.separator),
  data: data.table, key: newKey(start), note: notes.get(i) || "" });
const admits = (i, kind, label) => kind === "clear" ||
  (kind === "none" ? !label || !candidatesOf(i).includes(label) : candidatesOf(i).includes(label));
// How far the queue is: counted once, then kept, so that a decision costs the same after many.
const queued = new Uint8Array(n), progress = { done: 0, moved: 0 };
function weigh(i, sign) {
  const d = queued[i] && decisions.get(i);
  if (!d) return;
  progress.done += sign;
  if (d.label && d.label !== classes[finalOf(i)]) progress.moved += sign;
}
function countQueue() {
  queued.fill(0);
  progress.done = progress.moved = 0;
  for (const i of view) { queued[i] = 1; weigh(i, 1); }
}
function show(record) {
  const i = rowOf.get(String(record.id)), kind = record.decision, label = record.label || "";
  if (i === undefined || !admits(i, kind, label)) return false;
  weigh(i, -1);
  if (kind === "clear") decisions.delete(i);
  else decisions.set(i, { kind, label, time: record.time,
    unseen: String(record.key || "").startsWith(UNSEEN) });
  if (record.note) notes.set(i, record.note); else notes.delete(i);
  weigh(i, 1);
  return true;
}
const isSeen = (i) => decisions.has(i) && !decisions.get(i).unseen;
const isExcluded = (i) => (decisions.has(i) ? !decisions.get(i).label : excluded(i));
// The label of a row as things stand: by review, or the final label; -1 if it has none of ours.
function labelNow(i) {
  const d = decisions.get(i);
  if (d) return d.label ? classOf.get(d.label) ?? -1 : -1;
  return excluded(i) ? -1 : finalOf(i);
}

// Served: one item per decision that waits. As a file: one item per row, the latest decision.
const stored = () => Object.keys(localStorage).filter((key) => key.startsWith(shelf)).sort();
const itemOf = (record) => shelf + (server ? record.key : "row:" + record.id);
function keep(record) {
  try { localStorage.setItem(itemOf(record), JSON.stringify(record)); } catch { forgetful = true; }
  if (server) { unsaved.set(record.key, record); since ||= Date.now(); }
}
function forget(record) {
  unsaved.delete(record.key);
  try { localStorage.removeItem(itemOf(record)); } catch { forgetful = true; }
}
function recall() { // what an earlier visit left behind
  try {
    for (const key of stored()) {
      const record = JSON.parse(localStorage.getItem(key));
      const usable = record.data === data.table || (data.ids && rowOf.has(record.id) &&
        admits(rowOf.get(record.id), record.decision, record.label));
      if (!usable || !show(record)) strays.push(record);
      else if (server) unsaved.set(record.key, { ...record, data: data.table });
    }
  } catch { forgetful = true; }
}
function startOver() { // as the run left it, before this review
  decisions.clear();
  notes.clear();
  for (const [i, [kind, label]] of Object.entries(data.decisions))
    decisions.set(Number(i), { kind, label, time: "", unseen: false });
  countQueue();
}

// ---- the server -----------------------------------------------------------------------------
let mark = ""; // of the file on the server, as far as it is known here
async function request(path, options, milliseconds = 8000) {
  return fetch(path, { ...options, cache: "no-store", signal: AbortSignal.timeout(milliseconds),
    headers: { Authorization: "Bearer " + encodeURIComponent(server.token) } });
}
const ask = (query, options) => request(server.endpoint + query, options);
async function fetchDecisions() { // what others decided since; true if there is anything new
  const answer = await ask("?since=" + encodeURIComponent(mark), {});
  if (!answer.ok) throw new Error((await answer.text()).trim());
  const found = await answer.json();
  mark = found.mark;
  if (found.whole) startOver();
  let news = found.whole;
  for (const record of found.records) {
    const i = rowOf.get(String(record.id)), old = decisions.get(i), note = notes.get(i) || "";
    if (!show(record)) continue;
    const d = decisions.get(i);
    news ||= Boolean(old) !== Boolean(d) || (d && d.label !== old.label) || note !== (record.note || "");
  }
  for (const record of unsaved.values()) show(record); // ours, which the server does not have yet
  return news;
}
async function flush() { // in their order, each again until the server has it
  if (sending || !unsaved.size) return;
  sending = true;
  const late = trouble;
  clearTimeout(retry);
  while (unsaved.size) {
    const batch = [...unsaved.values()].slice(0, MOST_SENT);
    while (batch.length > 1 && JSON.stringify(batch).length > 5e5) batch.length >>= 1;
    try {
      const answer = await ask("", { method: "POST",
        body: JSON.stringify(batch.length > 1 ? batch : batch[0]) });
      const reason = answer.ok ? "" : (await answer.text()).trim();
      if (answer.ok) {
        const reasons = batch.length > 1 ? await answer.json() : [""];
        batch.forEach((record, k) => (reasons[k] ? refuse(record, reasons[k]) : forget(record)));
        trouble = "";
        sent = true;
      } else if ([400, 422].includes(answer.status) && batch.length === 1) refuse(batch[0], reason);
      else { trouble = reason || String(answer.status); break; }
    } catch { trouble = "the server does not answer"; break; }
    showStatus();
  }
  sending = false;
  if (late || trouble) redraw();
  if (!unsaved.size) since = 0; else retry = setTimeout(flush, 1500);
  showStatus();
}
function refuse(record, reason) {
  forget(record);
  weigh(rowOf.get(record.id), -1);
  decisions.delete(rowOf.get(record.id));
  refused = "Refused: " + reason;
  redraw();
}

// ---- two windows see each other's decisions --------------------------------------------------
const EVERY = 2000; // milliseconds between two looks at the server
async function watch() {
  if (!document.hidden && !sending && !trouble) {
    try { if (await fetchDecisions()) { redraw(); showStatus(); } } catch { /* flush says it */ }
  }
  setTimeout(watch, EVERY);
}
addEventListener("storage", (event) => { // another window of the same file
  if (server || !event.key || !event.key.startsWith(shelf) || !event.newValue) return;
  if (show(JSON.parse(event.newValue))) { redraw(); showStatus(); }
});

// ---- deciding ------------------------------------------------------------------------------
function kindOf(i, label) {
  if (!candidatesOf(i).includes(classes[label])) return "none";
  return label === finalOf(i) ? "accept" : label === firstOf(i) ? "keep" : "other";
}
function enter(i, kind, label, start) {
  const found = makeRecord(i, kind, label, start);
  if (!show(found)) return false;
  keep(found);
  return true;
}
function decide(i, kind, label = "") {
  if (i < 0 || !enter(i, kind, label)) return;
  made.push([i]);
  noteTime();
  if (server) flush();
  say(`${cut(nameOf(i), 60)}: ${kind === "none" && !label ? "not usable" : cut(label, 60)}`);
  if (trail.length) goBack(); else moveOn(i);
}
const choose = (i, label) => i >= 0 && decide(i, kindOf(i, label), classes[label]);
function writeNote(i, text) { // a note goes with the row's decision, or without one
  if ((notes.get(i) || "") === text) return;
  if (text) notes.set(i, text); else notes.delete(i);
  const d = decisions.get(i);
  enter(i, d ? d.kind : "clear", d ? d.label : "", d && d.unseen ? UNSEEN : SEEN);
  if (server) flush();
  say(text ? `Note on ${cut(nameOf(i), 60)} saved.` : `Note on ${cut(nameOf(i), 60)} removed.`);
  redraw();
}
// Rows that can be accepted together: sure enough, not decided, not drawn at random for the audit.
function sureRows(least) {
  const list = [];
  for (let i = 0; i < n; i++)
    if (confidence[i] >= least && !decisions.has(i) && !isAudit.has(i)) list.push(i);
  return list;
}
const expectedWrong = (rows) => rows.reduce((sum, i) => sum + 1 - confidence[i] / WHOLE, 0);
function acceptAll(rows) {
  const taken = rows.filter((i) => enter(i, kindOf(i, finalOf(i)), classes[finalOf(i)], UNSEEN));
  if (!taken.length) return;
  made.push(taken);
  if (server) flush();
  say(`${plural(taken.length, "row")} accepted together`);
  redraw();
}
function takeBack(i) { // this row's decision, else the last one
  const own = i >= 0 && decisions.has(i) && !decisions.get(i).unseen;
  while (!own && made.length && !made.at(-1).some((row) => decisions.has(row))) made.pop();
  const rows = own ? [i] : (made.at(-1) || []).filter((row) => decisions.has(row));
  if (!rows.length) { say("Nothing to undo."); return; }
  const gone = decisions.get(rows[0]);
  for (const row of rows) enter(row, "clear", "");
  if (own) {
    const at = made.findLastIndex((list) => list.length === 1 && list[0] === i);
    if (at >= 0) made.splice(at, 1);
  } else made.pop();
  if (server) flush();
  if (rows.length === 1 && state.view === "review" && (ended || rows[0] !== i)) reach(rows[0]);
  else redraw();
  say(rows.length > 1 ? `Took back ${count(rows.length)} decisions.`
    : `Took back ${gone.label ? cut(gone.label, 60) : "not usable"} on ${cut(nameOf(rows[0]), 60)}.`);
}

// ---- pace: seconds per decision, the median of the last ones ----------------------------------
const gaps = [];
let lastTime = 0;
function noteTime(now = Date.now()) {
  const gap = (now - lastTime) / 1000;
  if (lastTime && gap > 0.3 && gap < 120) gaps.push(gap);
  if (gaps.length > 30) gaps.shift();
  lastTime = now;
}
function recallPace() { // by the times of decisions that were made before
  const times = [...decisions.values()].filter((d) => d.time && !d.unseen).map((d) => Date.parse(d.time));
  times.filter(Number.isFinite).sort((x, y) => x - y).slice(-31).forEach((time) => noteTime(time));
  lastTime = 0;
}
function minutesFor(rows) { // "" while the pace is not known
  if (gaps.length < 3 || !rows) return "";
  const pace = gaps.toSorted((x, y) => x - y)[gaps.length >> 1], minutes = (pace * rows) / 60;
  return minutes < 1 ? "less than 1 min" : `about ${count(Math.round(minutes))} min`;
}

// ---- the audit: rows drawn at random say how many labels are correct ---------------------------
function auditSoFar() {
  const seen = (data.audit || []).filter(isSeen);
  const hits = seen.filter((i) => decisions.get(i).label === classes[finalOf(i)]).length;
  return { rows: seen.length, hits };
}
// Share of a Beta(a, b) distribution below x, by the continued fraction (Lentz's method).
function betaBelow(x, a, b) {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - betaBelow(1 - x, b, a);
  const tiny = 1e-300, away = (v) => (Math.abs(v) < tiny ? tiny : v);
  let c = 1, d = 1 / away(1 - ((a + b) * x) / (a + 1)), value = d;
  for (let m = 1; m < 500; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away(1 + even * d);
    c = away(1 + even / c);
    value *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away(1 + odd * d);
    c = away(1 + odd / c);
    value *= d * c;
    if (Math.abs(d * c - 1) < 1e-14) break;
  }
  const front = a * Math.log(x) + b * Math.log(1 - x) - logBeta(a, b) - Math.log(a);
  return Math.exp(front) * value;
}
function logGamma(z) { // Stirling's series, after the argument was moved up
  let shift = 0;
  for (; z < 12; z++) shift += Math.log(z);
  const r = 1 / (z * z);
  return (z - 0.5) * Math.log(z) - z + 0.5 * Math.log(2 * Math.PI) - shift +
    (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r / 1680))) / z;
}
const logBeta = (a, b) => logGamma(a) + logGamma(b) - logGamma(a + b);
function shareInterval(hits, rows) { // 95 % (Jeffreys), the one of the run's own audit
  const find = (share) => {
    let low = 0, high = 1;
    for (let k = 0; k < 60; k++) {
      const middle = (low + high) / 2;
      if (betaBelow(middle, hits + 0.5, rows - hits + 0.5) < share) low = middle; else high = middle;
    }
    return (low + high) / 2;
  };
  return [find(0.025), find(0.975)];
}
function sayAudit() {
  const { rows, hits } = auditSoFar();
  if (!rows) return "";
  const [low, high] = shareInterval(hits, rows).map((share) => Math.round(100 * share));
  return `Of ${plural(rows, "row")} drawn at random, ${count(hits)} ${hits === 1 ? "was" : "were"} ` +
    `correct: between ${low} and ${high} % of all labels are (95 % interval).`;
}

// ---- the bar at the foot of the window ---------------------------------------------------------
let words = "";
function say(text) { words = text; showStatus(); }
function showStatus() {
  const done = decisions.size, waiting = unsaved.size;
  const late = waiting && (trouble || Date.now() - since > 2000);
  $("progress").textContent = sayProgress();
  $("undo").disabled = !made.some((rows) => rows.some((i) => decisions.has(i))) &&
    !(state.view === "review" && current >= 0 && isSeen(current));
  const parts = [];
  if (late) parts.push(`${waiting} not saved: ${trouble || "the server is slow"}. ` + (forgetful
    ? "Keep this window open." : "Kept in this browser and sent again."));
  if (refused) parts.push(refused);
  if (strays.length) parts.push(
    `${strays.length} decisions on another version of this table are kept aside (Export).`);
  const alarm = late || refused || (forgetful && decisions.size);
  if (!alarm && server) parts.push(waiting ? "Saving" : done || sent ? "All saved in decisions.csv." : "");
  if (!server && done) parts.push(forgetful ? "Not kept by this browser: export them."
    : "Kept in this browser: export them.");
  $("status").classList.toggle("alarm", Boolean(alarm));
  $("saved").textContent = parts.filter(Boolean).join(" ");
  $("dismiss").hidden = !refused;
  if ($("said").textContent !== words) $("said").textContent = words;
}
addEventListener("beforeunload", (event) => {
  if (forgetful && (server ? unsaved.size : decisions.size)) event.preventDefault();
});
