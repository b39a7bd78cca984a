// ---- decisions: shown at once, kept by the browser until the server has them -------------
const decisions = new Map(); // row -> {kind, label, time}
const shelf = "appellate:" + (server ? server.folder : location.pathname) + ":";
const unsaved = new Map(); // key -> record, the earliest first
const strays = []; // records of another version of the table, which mean no row of this one
const made = []; // rows decided here, the latest last
let trouble = "", refused = "", forgetful = false, sending = false, retry = 0, since = 0, serial = 0;

function newKey() { // in the order of time; no spreadsheet takes it for a number
  const random = crypto.getRandomValues(new Uint32Array(2));
  return "d" + Date.now().toString(36).padStart(9, "0") +
    (serial++).toString(36).padStart(4, "0") + [...random].map((r) => r.toString(36)).join("");
}
const makeRecord = (i, kind, label) => ({ id: nameOf(i), decision: kind, label,
  time: new Date().toISOString(), candidates: candidatesOf(i).join(data.separator),
  data: data.table, key: newKey() });
const admits = (i, kind, label) => kind === "clear" ||
  (kind === "none" ? !label || !candidatesOf(i).includes(label) : candidatesOf(i).includes(label));
function show(record) {
  const i = rowOf.get(String(record.id)), kind = record.decision, label = record.label || "";
  if (i === undefined || !admits(i, kind, label)) return false;
  if (kind === "clear") decisions.delete(i);
  else decisions.set(i, { kind, label, time: record.time });
  return true;
}

// One item a decision, so that two windows never overwrite each other's.
const stored = () => Object.keys(localStorage).filter((key) => key.startsWith(shelf)).sort();
function keep(record) {
  try {
    if (!server) for (const key of stored())
      if (JSON.parse(localStorage.getItem(key)).id === record.id) localStorage.removeItem(key);
    localStorage.setItem(shelf + record.key, JSON.stringify(record));
  } catch { forgetful = true; }
  if (server) { unsaved.set(record.key, record); since ||= Date.now(); flush(); }
}
function forget(key) {
  unsaved.delete(key);
  try { localStorage.removeItem(shelf + key); } catch { forgetful = true; }
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

async function ask(options) {
  return fetch(server.endpoint, { ...options, cache: "no-store", signal: AbortSignal.timeout(8000),
    headers: { Authorization: "Bearer " + encodeURIComponent(server.token) } });
}
async function fetchDecisions() { // the server's file is the only source
  const answer = await ask({});
  if (!answer.ok) throw new Error((await answer.text()).trim());
  for (const record of (await answer.json()).records) show(record);
}
async function flush() { // one after the other, each again until the server has it
  if (sending || !unsaved.size) return;
  sending = true;
  const late = trouble;
  clearTimeout(retry);
  while (unsaved.size) {
    const [key, record] = unsaved.entries().next().value;
    try {
      const answer = await ask({ method: "POST", body: JSON.stringify(record) });
      const reason = answer.ok ? "" : (await answer.text()).trim();
      if (answer.ok) { forget(key); trouble = ""; } else if ([400, 422].includes(answer.status)) {
        forget(key);
        decisions.delete(rowOf.get(record.id));
        refused = "Refused: " + reason;
        draw(true);
      } else { trouble = reason || String(answer.status); break; }
    } catch { trouble = "the server does not answer"; break; }
    showStatus();
  }
  sending = false;
  if (late || trouble) draw(true);
  if (!unsaved.size) since = 0; else retry = setTimeout(flush, 1500);
  showStatus();
}

function decide(i, kind, label = "") {
  if (i < 0) return;
  const record = makeRecord(i, kind, label);
  if (!show(record)) return;
  made.push(i);
  keep(record);
  say(`${cut(nameOf(i), 60)}: ${kind === "none" && !label ? "none of these" : cut(label, 60)}.`);
  if (trail.length) goBack(); else moveOn(i);
}
const choose = (i, label) => decide(i, !candidatesOf(i).includes(classes[label]) ? "none"
  : label === appeal(i) ? "accept" : label === verdict(i) ? "keep" : "other", classes[label]);
function takeBack(i) { // this row's decision, else the last one
  const last = decisions.has(i) ? i : made.findLast((row) => decisions.has(row));
  if (last === undefined) { say("Nothing to undo."); return; }
  const gone = decisions.get(last);
  const record = makeRecord(last, "clear", "");
  show(record);
  keep(record);
  made.splice(made.lastIndexOf(last), 1);
  if (last !== i) reach(last); else { draw(true); renderDetail(); }
  say(`Took back ${gone.label ? cut(gone.label, 60) : "none of these"} on ${cut(nameOf(last), 60)}.`);
}

function sayAudit() { // rows drawn at random say how many labels are right
  const seen = (data.audit || []).filter((i) => decisions.has(i));
  const right = seen.filter((i) => decisions.get(i).label === classes[appeal(i)]).length;
  $("audit").textContent = seen.length
    ? `Of ${seen.length} reviewed rows drawn at random, ${right} ${right === 1 ? "was" : "were"} right.` : "";
}

// ---- the bar at the foot of the window ----------------------------------------------------
let words = "";
function say(text) { words = text; showStatus(); }
function showStatus() {
  const done = decisions.size, first = data.suggested.filter((i) => decisions.has(i)).length;
  $("done").style.width = (100 * done) / Math.max(n, 1) + "%";
  $("progress").textContent = `${count(done)} of ${count(n)} reviewed` +
    (data.suggested.length ? `, ${first} of the ${data.suggested.length} suggested` : "");
  sayAudit();
  const waiting = unsaved.size, late = waiting && (trouble || Date.now() - since > 2000);
  const parts = [];
  if (late) parts.push(`${waiting} not saved: ${trouble || "the server is slow"}. ` + (forgetful
    ? "Keep this window open." : "Kept in this browser and sent again."));
  if (refused) parts.push(refused);
  if (strays.length) parts.push(
    `${strays.length} decisions on another version of this table are kept aside (Files).`);
  const alarm = late || refused || (forgetful && decisions.size);
  if (!alarm && server) parts.push(waiting ? "Saving" : done ? "All saved in decisions.csv." : "");
  if (!server && done) parts.push(forgetful ? "Not kept by this browser: export them (Files)."
    : "Kept in this browser: export them (Files).");
  $("status").classList.toggle("alarm", Boolean(alarm));
  $("saved").textContent = parts.filter(Boolean).join(" ");
  $("dismiss").hidden = !refused;
  if ($("said").textContent !== words) $("said").textContent = words;
}
addEventListener("beforeunload", (event) => {
  if (forgetful && (server ? unsaved.size : decisions.size)) event.preventDefault();
});
