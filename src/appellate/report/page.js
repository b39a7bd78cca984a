"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($("data").textContent);
  $("data").textContent = "";

  // ---- decoding ---------------------------------------------------------------------
  function bytes(text) {
    const raw = atob(text);
    const out = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
    return out;
  }
  const u32 = (t) => new Uint32Array(bytes(t).buffer);
  const u16 = (t) => new Uint16Array(bytes(t).buffer);
  const n = data.n;
  const classes = data.classes;
  const starts = u32(data.starts), labels = u32(data.labels), history = u32(data.history);
  const before = u16(data.before), after = u16(data.after), margin = u16(data.margin);
  const trajectory = data.trajectory ? bytes(data.trajectory) : null;
  const neighbors = data.neighbors ? u32(data.neighbors) : null;
  const rounds = data.rounds, entries = labels.length;
  const verdict = (i) => history[i];
  const appeal = (i) => history[rounds * n + i];
  const overturned = (i) => verdict(i) !== appeal(i);
  const settled = new Map(); // outcome by review; where it said none, the row was not heard
  for (const [i, [kind]] of Object.entries(data.decisions))
    settled.set(Number(i), kind === "none" ? "excluded" : "reviewed");
  const excluded = (i) => settled.get(i) === "excluded";
  const outcomeOf = (i) => settled.get(i) || (overturned(i) ? "overturned" : "upheld");
  const nameOf = (i) => (data.ids ? data.ids[i] : String(i));
  const percent = (value) => (value / 100).toFixed(value % 100 ? 1 : 0) + "%";
  function share(values, i, label) {
    for (let e = starts[i]; e < starts[i + 1]; e++) if (labels[e] === label) return values[e];
    return 0;
  }

  // ---- making elements; texts are only ever set as text -------------------------------
  function make(space, tag, attributes, children) {
    const node = space ? document.createElementNS(space, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {}))
      if (value !== undefined && value !== null) node.setAttribute(name, value);
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }
  const h = (tag, attributes, ...children) => make(null, tag, attributes, children);
  const s = (tag, attributes, ...children) => make(SVG, tag, attributes, children);
  const said = (tag, cls, text) => h(tag, { class: cls, dir: "auto" }, text);

  // ---- decisions --------------------------------------------------------------------
  const key = "appellate:" + document.querySelector('meta[name="appellate-key"]').content;
  const server = document.querySelector('meta[name="appellate-server"]');
  const decisions = new Map(); // row -> {kind, label, time}
  for (const [i, [kind, label]] of Object.entries(data.decisions))
    decisions.set(Number(i), { kind, label, time: "" });
  const rowOf = new Map();
  for (let i = 0; i < n; i++) rowOf.set(nameOf(i), i);
  const classOf = new Map(classes.map((name, j) => [name, j]));

  function restore(records) {
    for (const [id, kind, label, time] of records) {
      const i = rowOf.get(String(id));
      const j = kind === "none" ? -1 : classOf.get(String(label));
      if (i === undefined) continue;
      if (kind === "clear") decisions.delete(i);
      else if (j !== undefined) decisions.set(i, { kind, label: j, time: time || "" });
    }
  }
  const record = (i) => {
    const d = decisions.get(i);
    return d
      ? [nameOf(i), d.kind, d.label < 0 ? "" : classes[d.label], d.time]
      : [nameOf(i), "clear", "", new Date().toISOString()];
  };
  let log = []; // what was decided here, later entries last; kept by the browser
  function loadLocal() {
    try {
      log = JSON.parse(localStorage.getItem(key) || "[]");
      restore(log);
    } catch { log = []; }
  }
  function keep(i) {
    const entry = record(i);
    log = log.filter(([id]) => id !== entry[0]);
    log.push(entry);
    try { localStorage.setItem(key, JSON.stringify(log)); } catch { /* private window */ }
    if (server) send(entry);
  }
  async function send(entry) {
    const [id, decision, label, time] = entry;
    try {
      const answer = await fetch("decisions", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ id, decision, label, time }),
      });
      if (!answer.ok) throw new Error(String(answer.status));
      showProgress("saved");
    } catch (error) {
      showProgress("NOT saved on the server (" + error.message + "); kept in this browser");
    }
  }
  function decide(i, kind, label) {
    if (i < 0) return;
    decisions.set(i, { kind, label, time: new Date().toISOString() });
    keep(i);
    moved(i);
    step(1);
  }
  const choose = (i, label) =>
    decide(i, label === appeal(i) ? "accept" : label === verdict(i) ? "keep" : "other", label);
  function takeBack(i) {
    if (i < 0 || !decisions.delete(i)) return;
    keep(i);
    moved(i);
    renderDetail();
  }
  function moved() { showProgress(); draw(true); }
  function showProgress(note) {
    const done = decisions.size;
    $("progress").textContent =
      `${done.toLocaleString()} of ${n.toLocaleString()} reviewed` + (note ? `, ${note}` : "");
  }

  // ---- what is listed, and in which order ---------------------------------------------
  const rank = new Map(data.suggested.map((row, place) => [row, place]));
  const confidence = new Uint16Array(n);
  for (let i = 0; i < n; i++) confidence[i] = share(after, i, appeal(i));
  const collator = new Intl.Collator(undefined, { numeric: true });
  const text = (value) => (a, b) => collator.compare(value(a), value(b)) || a - b;
  const number = (value, sign) => (a, b) => sign * (value(a) - value(b)) || a - b;
  const urgency = (i) =>
    (rank.has(i) ? rank.get(i) : 1e6 + (overturned(i) ? 0 : 1e6) + margin[i]);
  const orders = {
    review: ["worth a look first", number(urgency, 1)],
    docket: ["as in the table", (a, b) => a - b],
    "margin-up": ["closest first", number((i) => margin[i], 1)],
    "margin-down": ["clearest first", number((i) => margin[i], -1)],
    "confidence-up": ["least confident first", number((i) => confidence[i], 1)],
    "confidence-down": ["most confident first", number((i) => confidence[i], -1)],
    "id-up": ["id A–Z", text(nameOf)],
    "id-down": ["id Z–A", (a, b) => text(nameOf)(b, a)],
    "verdict-up": ["verdict A–Z", text((i) => classes[verdict(i)])],
    "verdict-down": ["verdict Z–A", (a, b) => text((i) => classes[verdict(i)])(b, a)],
    "appeal-up": ["appeal A–Z", text((i) => classes[appeal(i)])],
    "appeal-down": ["appeal Z–A", (a, b) => text((i) => classes[appeal(i)])(b, a)],
    "outcome-up": ["overturned first", number((i) => (overturned(i) ? 0 : 1), 1)],
    "outcome-down": ["upheld first", number((i) => (overturned(i) ? 0 : 1), -1)],
  };
  for (const [name, [title]] of Object.entries(orders))
    $("order").append(h("option", { value: name }, title));
  const used = new Set();
  for (let i = 0; i < n; i++) { used.add(verdict(i)); used.add(appeal(i)); }
  [...used].sort((a, b) => collator.compare(classes[a], classes[b])).slice(0, 2000).forEach((j) =>
    $("class").append(h("option", { value: j, dir: "auto" }, classes[j].slice(0, 80))));

  const sorted = {}; // one sorted list of all rows for every order asked for
  function inOrder(order) {
    if (!sorted[order]) {
      const all = Uint32Array.from({ length: n }, (_, i) => i);
      sorted[order] = order === "docket" ? all : all.sort(orders[order][1]);
    }
    return sorted[order];
  }
  let haystack = null;
  function hay(i) {
    if (!haystack) haystack = new Array(n);
    if (haystack[i] === undefined) {
      const parts = [nameOf(i)];
      for (let e = starts[i]; e < starts[i + 1]; e++) parts.push(classes[labels[e]]);
      if (data.texts) parts.push(data.texts[i]);
      haystack[i] = parts.join("\n").toLowerCase();
    }
    return haystack[i];
  }
  let view = [], current = -1;
  function refresh(keepPlace) {
    const wanted = $("search").value.trim().toLowerCase();
    const outcome = $("outcome").value, label = $("class").value, limit = $("margin").value * 10000;
    $("margin-value").textContent = Number($("margin").value).toFixed(2);
    const passes = (i) =>
      (!outcome || (outcome === "overturned" || outcome === "upheld"
        ? outcomeOf(i) === outcome : (outcome === "done") === decisions.has(i))) &&
      (label === "" || verdict(i) === Number(label) || appeal(i) === Number(label)) &&
      margin[i] <= limit && (!wanted || hay(i).includes(wanted));
    view = inOrder($("order").value).filter(passes);
    $("count").textContent = `${view.length.toLocaleString()} of ${n.toLocaleString()} samples`;
    $("table").setAttribute("aria-rowcount", view.length + 1);
    $("spacer").style.height = view.length * rowHeight() + "px";
    const place = view.indexOf(current);
    if (place < 0) select(view.length ? view[0] : -1, !keepPlace);
    else reveal(place);
    if (!keepPlace && place < 0) body.scrollTop = 0;
    draw(true);
    markOrder();
  }

  // ---- the table: only the rows in sight exist ------------------------------------------
  const body = $("body"), rows = $("rows"), table = $("table");
  const rowHeight = () =>
    parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row"));
  const columns = [["id", "id"], ["verdict", "verdict"], ["", ""], ["appeal", "appeal"],
    ["confidence", "confidence"], ["margin", "margin"], ["outcome", "outcome"]];
  for (const [name, title] of columns) {
    const cell = h("div", { role: "columnheader", "data-sort": name || null });
    if (name) {
      const button = h("button", { type: "button" }, title);
      button.addEventListener("click", () => {
        const up = name + "-up", down = name + "-down";
        $("order").value = $("order").value === up ? down : up;
        refresh(true);
      });
      cell.append(button);
    }
    $("head").append(cell);
  }
  function markOrder() {
    const [name, way] = $("order").value.split("-");
    for (const cell of $("head").children)
      if (cell.dataset.sort === name && way)
        cell.setAttribute("aria-sort", way === "up" ? "ascending" : "descending");
      else cell.removeAttribute("aria-sort");
  }
  function chip(i) {
    const d = decisions.get(i);
    if (d) return d.kind === "none" ? h("span", { class: "chip none", role: "gridcell" }, "✗ none")
      : h("span", { class: "chip done", role: "gridcell", dir: "auto" },
        "✓ " + classes[d.label].slice(0, 60));
    const outcome = outcomeOf(i), looks = { excluded: "none", reviewed: "done" };
    return h("span", { class: "chip " + (looks[outcome] || outcome), role: "gridcell" }, outcome);
  }
  const cut = (value) => (value.length > 200 ? value.slice(0, 199) + "…" : value);
  function makeRow(place) {
    const i = view[place], heard = !excluded(i);
    const cell = (cls, value) =>
      h("span", { class: cls, role: "gridcell", dir: "auto" }, cut(value));
    const meter = h("span", { class: "meter", role: "gridcell" },
      s("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
        s("rect", { class: "track", width: 100, height: 8, rx: 2 }),
        s("rect", { class: "f-appeal", width: heard ? confidence[i] / 100 : 0, height: 8, rx: 2 })),
      heard ? (confidence[i] / 10000).toFixed(2) : "–");
    const row = h("div", {
      class: "r" + (overturned(i) ? " over" : ""), role: "row", id: "r-" + i,
      "aria-rowindex": place + 2, "aria-selected": i === current ? "true" : "false",
    }, cell("id", nameOf(i)), cell("v", heard ? classes[verdict(i)] : "–"),
      h("span", { class: "arrow", "aria-hidden": "true" }, overturned(i) ? "→" : heard ? "=" : ""),
      cell("a", heard ? classes[appeal(i)] : "–"), meter,
      h("span", { class: "num", role: "gridcell" }, heard ? (margin[i] / 10000).toFixed(2) : "–"),
      chip(i));
    row.addEventListener("click", () => {
      select(i, true);
      table.focus({ preventScroll: true });
      if (matchMedia("(max-width: 60rem)").matches) $("detail").scrollIntoView({ block: "start" });
    });
    return row;
  }
  let drawn = [-1, -1], printing = false;
  function draw(force) {
    const height = rowHeight(), all = printing;
    const first = all ? 0 : Math.max(0, Math.floor(body.scrollTop / height) - 6);
    const last = all ? Math.min(view.length, 2000)
      : Math.min(view.length, Math.ceil((body.scrollTop + body.clientHeight) / height) + 6);
    if (!force && first === drawn[0] && last === drawn[1]) return;
    drawn = [first, last];
    const made = [];
    for (let place = first; place < last; place++) made.push(makeRow(place));
    if (!view.length) made.push(h("p", { class: "empty" }, "No sample matches; widen the filters."));
    rows.replaceChildren(...made);
    rows.style.transform = `translateY(${first * height}px)`;
    if (current >= 0) table.setAttribute("aria-activedescendant", "r-" + current);
  }
  let waiting = false;
  body.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(false); });
  }, { passive: true });
  new ResizeObserver(() => {
    $("spacer").style.height = view.length * rowHeight() + "px";
    draw(true);
  }).observe(body);
  window.addEventListener("beforeprint", () => { printing = true; draw(true); });
  window.addEventListener("afterprint", () => { printing = false; draw(true); });

  function reveal(place) {
    const height = rowHeight(), top = place * height;
    if (top < body.scrollTop) body.scrollTop = top;
    else if (top + height > body.scrollTop + body.clientHeight)
      body.scrollTop = top + height - body.clientHeight;
  }
  function select(i, show) {
    current = i;
    if (show && i >= 0) reveal(view.indexOf(i));
    draw(true);
    renderDetail();
  }
  function step(by) {
    if (!view.length) return;
    const place = Math.min(view.length - 1, Math.max(0, view.indexOf(current) + by));
    select(view[place], true);
  }

  // ---- one sample ---------------------------------------------------------------------
  const MOST = 60;
  function ranked(i) {
    const list = [];
    for (let e = starts[i]; e < starts[i + 1]; e++) list.push(e);
    return list.sort((a, b) => after[b] - after[a] || before[b] - before[a]).slice(0, MOST);
  }
  function candidate(i, e, place) {
    const j = labels[e], d = decisions.get(i);
    const tags = [j === verdict(i) && "verdict", j === appeal(i) && "appeal",
      data.truth && data.truth[i] === classes[j] && "truth"].filter(Boolean).join(", ");
    const bars = s("svg", { viewBox: "0 0 150 26", "aria-hidden": "true" },
      s("rect", { class: "track", width: 100, height: 9, y: 2, rx: 2 }),
      s("rect", { class: "f-verdict", width: before[e] / 100, height: 9, y: 2, rx: 2 }),
      s("text", { class: "t", x: 105, y: 11 }, percent(before[e])),
      s("rect", { class: "track", width: 100, height: 9, y: 15, rx: 2 }),
      s("rect", { class: "f-appeal", width: after[e] / 100, height: 9, y: 15, rx: 2 }),
      s("text", { class: "t", x: 105, y: 24 }, percent(after[e])));
    const button = h("button", {
      type: "button", "aria-pressed": d && d.label === j ? "true" : "false",
      "aria-label": `${classes[j].slice(0, 200)}${tags ? ", " + tags : ""}, before ` +
        `${percent(before[e])}, after ${percent(after[e])}; choose`,
    }, place < 9 ? h("kbd", {}, String(place + 1)) : h("span", {}),
      h("span", { class: "name", dir: "auto" }, cut(classes[j]),
        tags ? h("span", { class: "tag" }, tags) : null), bars);
    button.addEventListener("click", () => choose(i, j));
    return h("li", {}, button);
  }
  function drawTrajectory(i) {
    const list = ranked(i).slice(0, 12).reverse();
    const x = (r) => 26 + (r * 266) / rounds, y = (v) => 104 - v * 94;
    const art = s("svg", { class: "trajectory", viewBox: "0 0 300 120", role: "img",
      "aria-label": "Confidence in each candidate: base alone, then the partner after every round" });
    for (const v of [0, 0.5, 1]) art.append(
      s("line", { class: "grid-line", x1: 26, x2: 292, y1: y(v), y2: y(v) }),
      s("text", { class: "t end", x: 22, y: y(v) + 4 }, String(v)));
    for (let r = 0; r <= rounds; r++)
      art.append(s("text", { class: "t mid", x: x(r), y: 118 }, r ? String(r) : "base"));
    for (const e of list) {
      const j = labels[e];
      const role = j === appeal(i) ? "appeal" : j === verdict(i) ? "verdict" : "rival";
      let d = `M${x(0)} ${y(before[e] / 10000)}`;
      for (let r = 0; r < rounds; r++) d += `L${x(r + 1)} ${y(trajectory[r * entries + e] / 255)}`;
      art.append(s("path", { class: "s-" + role, d }, s("title", {}, cut(classes[j]))));
    }
    return art;
  }
  function picture(i) {
    const source = data.images[i];
    if (!source) return null;
    const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(source);
    const local = !source.startsWith("//") &&
      (!scheme || scheme[1].toLowerCase() === "file" || source.startsWith("data:image/"));
    if (!local) return said("p", "note", "Not loaded, because it lies elsewhere: " + cut(source));
    const image = h("img", { class: "picture", alt: "Picture of " + cut(nameOf(i)) });
    image.addEventListener("error", () =>
      image.replaceWith(said("p", "note", "No picture found at " + cut(source))));
    image.src = scheme ? source : server ? "picture?" + encodeURIComponent(source)
      : source.split("/").map(encodeURIComponent).join("/");
    return image;
  }
  function near(i) {
    const list = h("ul", { class: "near" });
    for (let p = 0; p < data.k; p++) {
      const other = neighbors[i * data.k + p];
      const button = h("button", { type: "button" }, said("span", "", cut(nameOf(other))),
        said("span", overturned(other) ? "note" : "", cut(classes[appeal(other)])));
      button.addEventListener("click", () => { goTo(other); });
      list.append(h("li", {}, button));
    }
    return list;
  }
  function goTo(i) {
    if (!view.includes(i)) {
      $("search").value = ""; $("outcome").value = ""; $("class").value = ""; $("margin").value = 1;
      current = i;
      refresh(true);
    }
    select(i, true);
  }
  function renderDetail() {
    const i = current, box = $("detail");
    if (i < 0) { box.replaceChildren(); return; }
    const v = classes[verdict(i)], a = classes[appeal(i)], d = decisions.get(i);
    const says = h("p", { class: "says" });
    if (excluded(i)) {
      says.append("Excluded by review: it was not learned from. Of its candidates the model would " +
        "take ", said("b", "a", cut(a)), ".");
    } else if (overturned(i)) {
      let since = rounds;
      while (since > 1 && history[(since - 1) * n + i] === appeal(i)) since--;
      says.append(said("b", "v", cut(v)), " was overturned to ", said("b", "a", cut(a)),
        ` in round ${since}.`);
    } else says.append(said("b", "a", cut(a)), starts[i + 1] - starts[i] > 1
      ? " was upheld." : " is the only candidate.");
    if (data.truth && data.truth[i] !== null) says.append(" Truth: ", said("b", "", cut(data.truth[i])));
    const act = (keyName, label, kind, j, pressed) => {
      const button = h("button", { type: "button", "aria-pressed": pressed ? "true" : "false",
        "data-act": kind }, label + " ", h("kbd", {}, keyName));
      button.addEventListener("click", () => (kind === "clear" ? takeBack(i) : decide(i, kind, j)));
      return button;
    };
    const list = ranked(i), hidden = starts[i + 1] - starts[i] - list.length;
    const parts = [said("h2", "", cut(nameOf(i))), says];
    if (data.images) parts.push(picture(i));
    if (data.texts && data.texts[i]) parts.push(said("p", "text", data.texts[i]));
    parts.push(h("h3", {}, "Candidates: confidence before and after the appeal"),
      h("ul", { class: "cands" }, ...list.map((e, place) => candidate(i, e, place))));
    if (hidden > 0) parts.push(h("p", { class: "note" }, `and ${hidden} less likely candidates`));
    parts.push(h("div", { class: "review", role: "group", "aria-label": "Review" },
      act("a", "Accept appeal", "accept", appeal(i), d && d.kind === "accept"),
      overturned(i) ? act("v", "Keep verdict", "keep", verdict(i), d && d.kind === "keep") : null,
      act("n", "None of these", "none", -1, d && d.kind === "none"),
      d ? act("u", "Take back", "clear", -1, false) : null));
    if (trajectory && starts[i + 1] - starts[i] > 1)
      parts.push(h("h3", {}, "Over the rounds"), drawTrajectory(i));
    if (neighbors && data.k) parts.push(h("h3", {}, "Nearest samples and their labels"), near(i));
    box.replaceChildren(...parts.filter(Boolean));
    box.scrollTop = 0;
  }

  // ---- export ---------------------------------------------------------------------------
  // The same rule as appellate.tables.cells.neutralize.
  function cell(value) {
    const formula = /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(value) &&
      !/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(value);
    const safe = formula ? "'" + value : value;
    return /[",\r\n]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
  }
  function exportDecisions() {
    const lines = ["id,decision,label,time"];
    for (const i of [...decisions.keys()].sort((a, b) => a - b)) lines.push(record(i).map(cell).join(","));
    const address = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
    const link = h("a", { href: address, download: "decisions.csv" });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
    showProgress("exported");
  }

  // ---- keys and controls ------------------------------------------------------------------
  const page = () => Math.max(1, Math.floor(body.clientHeight / rowHeight()) - 1);
  const keys = {
    ArrowDown: () => step(1), j: () => step(1), ArrowUp: () => step(-1), k: () => step(-1),
    PageDown: () => step(page()), PageUp: () => step(-page()),
    Home: () => step(-view.length), End: () => step(view.length),
    a: () => decide(current, "accept", appeal(current)),
    v: () => decide(current, "keep", verdict(current)),
    n: () => decide(current, "none", -1),
    u: () => takeBack(current),
    e: exportDecisions,
    "/": () => $("search").focus(),
    "?": () => $("help").showModal(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
    const typing = event.target.closest("input, select, textarea");
    if (event.key === "Escape") { table.focus(); return; }
    if (typing || current < 0 && !"/?".includes(event.key)) return;
    const inside = event.target.closest("button, a");
    if (/^[1-9]$/.test(event.key)) {
      const e = ranked(current)[Number(event.key) - 1];
      if (e !== undefined) choose(current, labels[e]);
    } else if (keys[event.key] && !(inside && /^(Arrow|Page|Home|End)/.test(event.key))) {
      keys[event.key]();
    } else return;
    event.preventDefault();
  });
  let timer = 0;
  $("search").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => refresh(false), 120);
  });
  for (const id of ["outcome", "class", "order"]) $(id).addEventListener("change", () => refresh(false));
  $("margin").addEventListener("input", () => refresh(false));
  $("export").addEventListener("click", exportDecisions);
  $("help-button").addEventListener("click", () => $("help").showModal());

  async function start() {
    loadLocal();
    if (server) {
      try {
        const answer = await fetch("decisions");
        restore((await answer.json()).map((r) => [r.id, r.decision, r.label, r.time]));
      } catch { showProgress("the server does not answer"); }
    }
    refresh(false);
    showProgress();
    document.documentElement.dataset.ready = "true";
  }
  start();
})();
