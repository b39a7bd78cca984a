// ---- files: export and import; the same forms as appellate.review.decisions --------------------------------
const COLUMNS = ["id", "decision", "label", "time", "candidates", "data", "key", "note"];
const KINDS = ["accept", "keep", "other", "none"];
const isFormula = (value) => /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(value) &&
  !/^'*[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?$/.test(value);
const neutralize = (value) => (isFormula(value) ? "'" + value : value);
const restore = (value) => (value.startsWith("'") && isFormula(value) ? value.slice(1) : value);
function cell(value) {
  const safe = neutralize(String(value ?? ""));
  return /[",;\t\r\n]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
}
function write(records, names, kind) {
  return kind === "csv"
    ? [names, ...records.map((r) => names.map((name) => r[name]))].map((row) =>
      row.map(cell).join(",") + "\n").join("")
    : records.map((r) => JSON.stringify(r) + "\n").join("");
}
const decisionRecords = () => [...decisions.keys()].sort((x, y) => x - y).map((i) => {
  const d = decisions.get(i);
  return { ...makeRecord(i, d.kind, d.label, d.unseen ? UNSEEN : SEEN), time: d.time || "" };
});
function labelRecords() {
  return Array.from({ length: n }, (_, i) => {
    const d = decisions.get(i), gone = !d && excluded(i);
    return { id: nameOf(i), label: d ? d.label : gone ? "" : classes[finalOf(i)],
      confidence: d ? (d.label ? 1 : "") : gone ? "" : confidence[i] / WHOLE,
      outcome: d ? (d.label ? "reviewed" : "excluded") : outcomeOf(i),
      ...(suspicion && { suspicion: d || gone || outcomeOf(i) === UNANSWERED ? "" : suspicion[i] / WHOLE }) };
  });
}
function download(name, text) {
  const type = name.endsWith("csv") ? "text/csv" : "application/x-ndjson";
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
  say(`Exported ${name}.`);
}
function exportFile(name) {
  const kind = name.endsWith("csv") ? "csv" : "jsonl";
  const labelNames = ["id", "label", "confidence", "outcome", ...(suspicion ? ["suspicion"] : [])];
  download(name, name.startsWith("labels") ? write(labelRecords(), labelNames, kind)
    : write(name.startsWith("aside") ? strays : decisionRecords(), COLUMNS, kind));
}

function parseCsv(text, mark) {
  const rows = [[]];
  let value = "", quoted = false;
  for (let k = 0; k < text.length; k++) {
    const c = text[k];
    if (quoted) {
      if (c !== '"') value += c;
      else if (text[k + 1] === '"') { value += c; k++; } else quoted = false;
    } else if (c === '"' && !value) quoted = true;
    else if (c === mark) { rows.at(-1).push(value); value = ""; }
    else if (c === "\n") { rows.at(-1).push(value.replace(/\r$/, "")); value = ""; rows.push([]); }
    else value += c;
  }
  if (quoted) throw new Error("a quote is not closed");
  if (value || rows.at(-1).length) rows.at(-1).push(value); else rows.pop();
  return rows;
}
function parseDecisions(text) {
  const plain = text.replace(/^\ufeff/, "");
  if (plain.trimStart().startsWith("{"))
    return plain.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line));
  for (const mark of [",", ";", "\t"]) {
    const [head, ...rows] = parseCsv(plain, mark);
    const names = (head || []).map((name) => name.trim().toLowerCase());
    if (["id", "decision", "label"].every((name) => names.includes(name)))
      return rows.filter((row) => row.some(Boolean)).map((row, k) => {
        if (row.length !== names.length) throw new Error(`line ${k + 2} has ${row.length} cells`);
        return Object.fromEntries(names.map((name, at) => [name, restore(row[at])]));
      });
  }
  throw new Error("it has no columns id, decision and label");
}
async function importFile(file) {
  let taken = 0, same = 0;
  const skipped = [];
  try {
    const records = parseDecisions(await file.text());
    if (!data.ids && records.some((r) => r.data && r.data !== data.table))
      throw new Error("it was made on another version of this table, whose rows have no names");
    const latest = new Map(records.map((record) => [String(record.id), record]));
    for (const [id, { decision, label, key, note }] of latest) {
      const i = rowOf.get(id), d = decisions.get(i), start = String(key || "").startsWith(UNSEEN) ? UNSEEN : SEEN;
      if (decision === "clear") continue;
      if (i === undefined || !KINDS.includes(decision) || !admits(i, decision, label)) skipped.push(id);
      else if (d && d.kind === decision && d.label === label && (note || "") === (notes.get(i) || "")) same++;
      else {
        if (note) notes.set(i, note);
        enter(i, decision, label, start);
        taken++;
      }
    }
    if (server) flush();
    say(`Imported ${taken} decisions from ${cut(file.name, 60)}` + (same ? `, ${same} were here already` : "") +
      (skipped.length ? `; ${skipped.length} fit no row, e.g. ${cut(skipped[0], 40)}` : "") + ".");
  } catch (error) { say(`${cut(file.name, 60)} cannot be imported: ${error.message}.`); }
  $("imported").textContent = words;
  redraw();
}
function openFiles() {
  $("imported").textContent = "";
  $("aside").hidden = !strays.length;
  $("files").showModal();
}

// ---- paper: all rows of the list, as a table whose head is repeated -------------------------------------------
const PRINTED = 5000;
addEventListener("beforeprint", () => {
  if (["overview", "people"].includes(state.view)) { state.show = ""; filterRows(); }
  const rows = Array.from(view.slice(0, PRINTED), (i) => {
    const [, word] = chipOf(i);
    return h("tr", {}, ...[nameOf(i), ...(compared ? [classes[firstOf(i)]] : []), classes[finalOf(i)],
      decimal(confidence[i]), word].map((text) => said("td", "", cut(text))));
  });
  $("paper").replaceChildren(
    h("p", {}, view.length > PRINTED
      ? `The first ${count(PRINTED)} of ${count(view.length)} rows; filter the list to print others.`
      : `${count(view.length)} of ${count(n)} rows.`),
    h("table", {}, h("thead", {}, h("tr", {}, ...["row", ...(compared ? ["first label"] : []), "final label",
      "confidence", "outcome"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, ...rows)));
});
addEventListener("afterprint", () => $("paper").replaceChildren());
