// ---- the data: numbers as bytes, and what they say about a row ----------------------------
const SVG = "http://www.w3.org/2000/svg";
const $ = (id) => document.getElementById(id);
const root = document.documentElement;
const data = JSON.parse($("data").textContent);
const server = JSON.parse($("server").textContent); // null, or endpoint, token and folder
$("data").textContent = $("server").textContent = "";

function unpack(packed) {
  if (!packed) return null;
  const raw = atob(packed.bytes);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const kinds = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array };
  return new kinds[packed.type](bytes.buffer);
}
const n = data.n, classes = data.classes, summary = data.summary, WHOLE = 10000;
const [starts, labels, before, after, history, margin] =
  [data.starts, data.labels, data.before, data.after, data.history, data.margin].map(unpack);
const [rounds, neighbors, votes, suspicion, outcome, disputed] =
  [data.rounds, data.neighbors, data.votes, data.suspicion, data.outcome, data.contested].map(unpack);
const outside = data.outside && { starts: unpack(data.outside.starts), labels: unpack(data.outside.labels),
  before: unpack(data.outside.before), after: unpack(data.outside.after) };
const answers = data.answers && { people: data.answers.people, starts: unpack(data.answers.starts),
  person: unpack(data.answers.person), label: unpack(data.answers.label) };
const nRounds = data.history.shape[0] - 1, entries = labels.length;
const OUTSIDE = "outside the answers", UNANSWERED = "unanswered"; // outcomes of answers
const nNear = data.neighbors ? data.neighbors.shape[1] : 0;
const calibrated = "expected_wrong" in summary; // confidences say how many labels are correct
// Without first labels the majority vote is all that final labels can be compared with.
const compared = Boolean(data.first) || !("differing" in summary);
const firstOf = (i) => history[i];
const finalOf = (i) => history[nRounds * n + i];
const differs = (i) => firstOf(i) !== finalOf(i);
const contested = (i) => disputed[i] === 1; // its label could change
const settled = new Map(); // outcome by an earlier review; a row without a label was not learned from
for (const [i, [, label]] of Object.entries(data.decisions))
  settled.set(Number(i), label ? "reviewed" : "excluded");
const excluded = (i) => settled.get(i) === "excluded";
const outcomeOf = (i) => settled.get(i) || data.outcomes[outcome[i]];
const isPlain = (i) => !settled.has(i) && ![OUTSIDE, UNANSWERED].includes(outcomeOf(i));
const changed = (i) => isPlain(i) && differs(i);
const unchanged = (i) => isPlain(i) && !differs(i);
const close = (i) => contested(i) && !settled.has(i) && margin[i] < data.close * WHOLE;
const suspected = (i) => suspicion !== null && !data.suspicion_orders &&
  suspicion[i] >= data.suspect * WHOLE;
const nameOf = (i) => (data.ids ? data.ids[i] : String(i));
const rowOf = new Map();
for (let i = 0; i < n; i++) rowOf.set(nameOf(i), i);
const classOf = new Map(classes.map((name, j) => [name, j]));
const textOf = (i) => (data.texts && data.texts[i]) || "";
const isAudit = new Set(data.audit || []);
function candidatesOf(i) {
  const names = [];
  for (let e = starts[i]; e < starts[i + 1]; e++) names.push(classes[labels[e]]);
  return names;
}
// Labels to show: the candidates, e in the arrays of entries, and others that are likely.
function shownOf(i) {
  const list = [];
  for (let e = starts[i]; e < starts[i + 1]; e++)
    list.push({ label: labels[e], before: before[e], after: after[e], e });
  if (outside) for (let e = outside.starts[i]; e < outside.starts[i + 1]; e++)
    list.push({ label: outside.labels[e], before: outside.before[e], after: outside.after[e], e: -1 });
  return list;
}
const confidence = new Uint16Array(n); // of the final label
function findConfidence(starts, labels, after) {
  for (let i = 0; i < n; i++) {
    const wanted = finalOf(i);
    for (let e = starts[i]; e < starts[i + 1]; e++) if (labels[e] === wanted) confidence[i] = after[e];
  }
}
findConfidence(starts, labels, after);
if (outside) findConfidence(outside.starts, outside.labels, outside.after);
function answersOf(i) {
  if (!answers) return [];
  const list = [];
  for (let k = answers.starts[i]; k < answers.starts[i + 1]; k++)
    list.push({ person: answers.person[k], label: answers.label[k] });
  return list;
}
function agreed(i) { // two answers or more, all the same
  const from = answers.starts[i], to = answers.starts[i + 1];
  if (to - from < 2) return false;
  for (let k = from + 1; k < to; k++) if (answers.label[k] !== answers.label[from]) return false;
  return true;
}

// ---- making elements; texts are only ever set as text ---------------------------------------
function make(space, tag, attributes, children) {
  const node = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {}))
    if (value !== undefined && value !== null) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}
const h = (tag, attributes, ...children) => make(null, tag, attributes, children);
const s = (tag, attributes, ...children) => make(SVG, tag, attributes, children);
// Options such as --image stay whole where a line is broken.
const withOptions = (text) => text.split(/(--[a-z][a-z-]*)/).map((part, k) => (k % 2 ? h("span", { class: "option" }, part) : part));
const said = (tag, cls, text) => h(tag, { class: cls || null, dir: "auto" }, text);
const cut = (value, most = 200) =>
  (value.length > most ? value.slice(0, most - 1) + "…" : value);
function whole(name) { // where it does not fit, its middle goes: names differ at their end
  const text = cut(name), tail = text.length > 12 ? 7 : 0;
  return h("span", { class: "whole", dir: "auto" }, h("span", {}, text.slice(0, text.length - tail)),
    h("span", {}, text.slice(text.length - tail)));
}
const count = (value) => value.toLocaleString("en");
const plural = (value, one, many = one + "s") => `${count(value)} ${value === 1 ? one : many}`;
const percent = (value) => `${Math.round(value / 100)} %`; // of a share in 1/10000
const finer = (value) => (value / 100).toFixed(value % 100 ? 1 : 0) + " %";
const decimal = (value) => (value / WHOLE).toFixed(2);
function button(attributes, act, ...children) {
  const node = h("button", { type: "button", ...attributes }, ...children);
  node.addEventListener("click", act);
  return node;
}
function bar(share, cls, tick) { // with a tick at another share
  return s("svg", { class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none",
    "aria-hidden": "true" }, s("rect", { class: "track", width: 100, height: 8, rx: 2 }),
  s("rect", { class: cls, width: share * 100, height: 8, rx: 2 }),
  tick === undefined ? null : s("rect", { class: "tick", x: Math.min(98, tick * 100), width: 2, height: 8 }));
}
// A text with what was searched for marked in it; from shortly before the first match if it is cut.
const LEAD = 24;
function marked(text, wanted, most = Infinity) {
  const low = wanted ? text.toLowerCase() : "", at = wanted ? low.indexOf(wanted) : -1;
  if (at < 0 || low.length !== text.length) return [cut(text, most)];
  const from = most < Infinity && at > 1.5 * LEAD ? at - LEAD : 0, parts = [from ? "…" : ""];
  let done = from;
  for (let next = at; next >= 0 && next < from + most; next = low.indexOf(wanted, done)) {
    parts.push(text.slice(done, next), h("mark", {}, text.slice(next, next + wanted.length)));
    done = next + wanted.length;
  }
  parts.push(text.slice(done, Math.max(done, from + most)), from + most < text.length ? "…" : "");
  return parts.filter((part) => part !== "");
}

// ---- images -------------------------------------------------------------------------------
function addressOf(source) {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(source);
  if (!scheme && !source.startsWith("//"))
    return server ? "picture?" + encodeURIComponent(source)
      : source.split("/").map(encodeURIComponent).join("/");
  return source.startsWith("data:image/") || /^file:\/\/\/[^/]/i.test(source) ? source : null;
}
function image(i, cls, alt) {
  const source = data.images && data.images[i], address = source && addressOf(source);
  if (!address) return null;
  const node = h("img", { class: cls, alt });
  node.addEventListener("load", () => node.classList.toggle("tiny",
    node.naturalWidth < (cls === "thumb" ? 64 : 200)));
  node.src = address;
  return node;
}
const thumbs = new Map(); // row -> image, so that a redrawn list loads nothing again
function thumb(i) {
  if (!data.images) return null;
  if (!thumbs.has(i)) {
    if (thumbs.size > 600) thumbs.clear();
    const node = image(i, "thumb", "") || h("span", { class: "thumb" });
    node.addEventListener("error", () => node.classList.add("gone"));
    thumbs.set(i, node);
  }
  const node = thumbs.get(i);
  return node.isConnected ? node.cloneNode() : node;
}
