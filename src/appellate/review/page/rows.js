// ---- the data: numbers as bytes, and what they say of a row -----------------------------
const SVG = "http://www.w3.org/2000/svg";
const $ = (id) => document.getElementById(id);
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
const n = data.n, classes = data.classes, WHOLE = 10000;
const [starts, labels, before, after, history, margin] =
  [data.starts, data.labels, data.before, data.after, data.history, data.margin].map(unpack);
const [rounds, neighbors, votes, suspicion, outcome, disputed] =
  [data.rounds, data.neighbors, data.votes, data.suspicion, data.outcome, data.contested].map(unpack);
const outside = data.outside && { starts: unpack(data.outside.starts), labels: unpack(data.outside.labels),
  before: unpack(data.outside.before), after: unpack(data.outside.after) };
const answers = data.answers && { people: data.answers.people, starts: unpack(data.answers.starts),
  person: unpack(data.answers.person), label: unpack(data.answers.label) };
const nRounds = data.history.shape[0] - 1, entries = labels.length;
const OUTSIDE = "outside the answers", UNANSWERED = "unanswered"; // outcomes of a crowd
const nNear = data.neighbors ? data.neighbors.shape[1] : 0;
const verdict = (i) => history[i];
const appeal = (i) => history[nRounds * n + i];
const overturned = (i) => verdict(i) !== appeal(i);
const contested = (i) => disputed[i] === 1; // its label could change
const settled = new Map(); // outcome by an earlier review; where it named no label, not heard
for (const [i, [, label]] of Object.entries(data.decisions))
  settled.set(Number(i), label ? "reviewed" : "excluded");
const excluded = (i) => settled.get(i) === "excluded";
const outcomeOf = (i) => settled.get(i) || data.outcomes[outcome[i]];
const changed = (i) => outcomeOf(i) === "overturned";
const close = (i) => contested(i) && !settled.has(i) && margin[i] < data.close * WHOLE;
const suspected = (i) => suspicion !== null && !data.suspicion_orders &&
  suspicion[i] >= data.suspect * WHOLE;
const nameOf = (i) => (data.ids ? data.ids[i] : String(i));
const rowOf = new Map();
for (let i = 0; i < n; i++) rowOf.set(nameOf(i), i);
const classOf = new Map(classes.map((name, j) => [name, j]));
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
const confidence = new Uint16Array(n); // of the appeal
for (let i = 0; i < n; i++)
  for (const each of shownOf(i)) if (each.label === appeal(i)) confidence[i] = each.after;

// ---- making elements; texts are only ever set as text -----------------------------------
function make(space, tag, attributes, children) {
  const node = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {}))
    if (value !== undefined && value !== null) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}
const h = (tag, attributes, ...children) => make(null, tag, attributes, children);
const s = (tag, attributes, ...children) => make(SVG, tag, attributes, children);
const said = (tag, cls, text) => h(tag, { class: cls || null, dir: "auto" }, text);
const cut = (value, most = 200) =>
  (value.length > most ? value.slice(0, most - 1) + "…" : value);
function whole(name) { // where it does not fit, its middle goes: names differ at their end
  const text = cut(name), tail = text.length > 12 ? 7 : 0;
  return h("span", { class: "whole", dir: "auto" }, h("span", {}, text.slice(0, text.length - tail)),
    h("span", {}, text.slice(text.length - tail)));
}
const count = (value) => value.toLocaleString("en");
const percent = (value) => (value / 100).toFixed(value % 100 ? 1 : 0) + "%";
function button(attributes, act, ...children) {
  const node = h("button", { type: "button", ...attributes }, ...children);
  node.addEventListener("click", act);
  return node;
}
function bar(share, cls, width = 100, height = 8) {
  return s("svg", { class: "bar", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none",
    "aria-hidden": "true" }, s("rect", { class: "track", width, height, rx: 2 }),
  s("rect", { class: cls, width: share * width, height, rx: 2 }));
}

// ---- pictures ---------------------------------------------------------------------------
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
    node.naturalWidth < (cls === "thumb" ? 64 : 150)));
  node.src = address;
  return node;
}
const thumbs = new Map(); // row -> picture, so that a redrawn list loads nothing again
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
