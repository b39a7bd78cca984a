// ---- charts: drawn at their own size, so that their texts have the size of the page's texts -----------
function roving(box, selector, across) { // one stop for Tab, arrows within; `across` cells per line
  const cells = () => [...box.querySelectorAll(selector)];
  cells().forEach((cell, k) => { cell.tabIndex = k ? -1 : 0; });
  box.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across }[event.key];
    const list = cells(), at = list.indexOf(event.target);
    if (!by || at < 0 || !list[at + by]) return;
    event.preventDefault();
    event.stopPropagation();
    list[at].tabIndex = -1;
    list[at + by].tabIndex = 0;
    list[at + by].focus();
  });
}
function niceStep(most, parts) { // 1, 2 or 5 times a power of ten
  const rough = Math.max(most / parts, 1e-9), power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((k) => k * power).find((each) => each >= rough);
}
// Expected wrong labels left after so many rows: left[k] after k rows; marks are [rows, words].
function drawCurve(left, marks, width) {
  const rows = left.length - 1, height = 250, x0 = 44, x1 = width - 24, y0 = height - 28, y1 = 18;
  const yStep = Math.max(niceStep(left[0], 5), left[0] > 4 ? 1 : 0), top = Math.max(yStep, Math.ceil(left[0] / yStep) * yStep);
  const xStep = Math.max(1, niceStep(rows, width < 480 ? 4 : 5));
  const x = (k) => x0 + ((x1 - x0) * k) / Math.max(rows, 1), y = (v) => y0 - ((y0 - y1) * v) / top;
  const art = s("svg", { class: "curve", viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": "Expected wrong labels left by rows reviewed: " + marks.map(([, text]) => text).join("; ") });
  for (let v = 0; v <= top + 1e-9; v += yStep) art.append(
    s("line", { class: "grid-line", x1: x0, x2: x1, y1: y(v), y2: y(v) }),
    s("text", { class: "t end", x: x0 - 8, y: y(v) + 4 }, yStep < 1 ? v.toFixed(1) : count(Math.round(v))));
  for (let k = 0; k <= rows; k += xStep)
    art.append(s("text", { class: "t mid", x: x(k), y: height - 8 }, count(k)));
  const points = [];
  for (let p = 0; p <= 200; p++) {
    const k = Math.round((rows * p) / 200);
    if (!points.length || points.at(-1)[0] !== k) points.push([k, left[k]]);
  }
  const path = points.map(([k, v]) => `${x(k).toFixed(1)} ${y(v).toFixed(1)}`).join("L");
  art.append(s("path", { class: "area", d: `M${x(0)} ${y(0)}L${path}L${x(rows)} ${y(0)}Z` }),
    s("path", { class: "s-appeal line", d: "M" + path }));
  let below = 0; // of the text before, so that texts do not lie over each other
  marks.forEach(([k, text], at) => {
    const late = x(k) > (x0 + x1) / 2;
    const line = Math.max(y1 - 4, y(left[k]) - 7, below);
    below = line + 17;
    art.append(s("circle", { class: at ? "f-appeal" : "f-verdict", cx: x(k), cy: y(left[k]), r: 5 }),
      s("text", { class: "t strong" + (late ? " end" : ""), x: x(k) + (late ? -10 : 10),
        y: line }, text));
  });
  return art;
}
// Bars that list rows: bins are {low, high, rows, wrong}; a drag lists a range.
function drawHistogram(bins, list, split) {
  const most = Math.max(1, ...bins.map((bin) => bin.rows));
  const box = h("div", { class: "histogram", role: "group", "aria-label": "Rows by confidence; a bar lists its rows" });
  bins.forEach((bin, k) => {
    const fill = h("span", { class: "fill" + (bin.low < split - 1e-9 ? " low" : "") });
    fill.style.setProperty("--share", String(bin.rows ? Math.max(0.015, bin.rows / most) : 0));
    box.append(button({ class: "column", "data-bin": k, title: `${bin.low.toFixed(2)} to ${bin.high.toFixed(2)}`,
      "aria-label": `confidence ${bin.low.toFixed(2)} to ${bin.high.toFixed(2)}: ${plural(bin.rows, "row")}` },
    () => list(k, k), h("span", { class: "number", "aria-hidden": "true" }, bin.rows ? short(bin.rows) : ""), fill));
  });
  roving(box, ".column", bins.length);
  let from = -1;
  const binAt = (event) => {
    const node = document.elementFromPoint(event.clientX, event.clientY);
    const column = node && node.closest(".column");
    return column && box.contains(column) ? Number(column.dataset.bin) : -1;
  };
  const paint = (to) => box.childNodes.forEach((node, k) => node.classList.toggle("picked",
    from >= 0 && to >= 0 && k >= Math.min(from, to) && k <= Math.max(from, to)));
  box.addEventListener("pointerdown", (event) => { from = binAt(event); });
  box.addEventListener("pointermove", (event) => { if (from >= 0 && event.buttons) paint(binAt(event)); });
  box.addEventListener("pointerleave", () => { from = -1; paint(-1); });
  box.addEventListener("pointerup", (event) => {
    const to = binAt(event), start = from;
    from = -1;
    paint(-1);
    if (start >= 0 && to >= 0 && start !== to) list(Math.min(start, to), Math.max(start, to));
  });
  return h("div", { class: "histogram-box" }, box, h("div", { class: "scale", "aria-hidden": "true" },
    h("span", {}, "0"), h("span", {}, "0.5"), h("span", {}, "1")));
}
const short = (value) => (value < 1000 ? String(value) : (value / 1000).toFixed(value < 9950 ? 1 : 0) + "k");
// Whether the counts over the bars of a histogram have room next to each other, in pixels.
const DIGIT = 7, LINE = 15, TALLEST = 172;
function haveRoom(bins, width) {
  const most = Math.max(1, ...bins.map((bin) => bin.rows)), wide = (bin) => DIGIT * short(bin.rows).length;
  return bins.every((bin, k) => !k || !bin.rows || !bins[k - 1].rows ||
    wide(bin) / 2 + wide(bins[k - 1]) / 2 < width / bins.length ||
    (TALLEST * Math.abs(bin.rows - bins[k - 1].rows)) / most > LINE);
}
// Counts of columns for rows; the diagonal is agreement. A cell lists its rows.
function drawMatrix({ cells, shown, rowWord, columnWord, unit, list }) {
  const at = (r, c) => cells.get(r * classes.length + c) || 0;
  let most = 1, same = 1;
  for (const r of shown) for (const c of shown)
    if (r === c) same = Math.max(same, at(r, c)); else most = Math.max(most, at(r, c));
  const head = h("tr", {}, h("td", {}), ...shown.map((c) => h("th", { scope: "col", dir: "auto", title: classes[c] },
    h("span", {}, cut(classes[c], 22)))));
  const body = shown.map((r) => h("tr", {}, h("th", { scope: "row", dir: "auto", title: classes[r] }, cut(classes[r], 22)),
    ...shown.map((c) => {
      const value = at(r, c), words = `${rowWord} ${classes[r]}, ${columnWord} ${classes[c]}: ${plural(value, unit)}`;
      const cell = value ? button({ class: "cell", title: words, "aria-label": words }, () => list(r, c), short(value))
        : h("span", { class: "cell" });
      const share = r === c ? value / same : value / most;
      if (value) {
        cell.classList.add(r === c ? "same" : "other");
        cell.style.setProperty("--share", `${Math.round(12 + 58 * share)}%`);
      }
      return h("td", {}, cell);
    })));
  const box = h("div", { class: "matrix-box", tabindex: shown.length > 8 ? 0 : null, role: "region",
    "aria-label": "Table of " + columnWord + "s by " + rowWord },
  h("table", { class: "matrix" }, h("thead", {}, head), h("tbody", {}, ...body)));
  box.style.setProperty("--cells", String(shown.length));
  roving(box, "button.cell", 1);
  return box;
}
const LABELS_SHOWN = 12, CELL = 26, NAMES = 76; // pixels of a cell, and of the names of the rows
function mostMixed(cells, width) { // the labels of a matrix, those that are mixed up most if there is no room
  const sums = new Map();
  for (const [key, value] of cells) {
    const r = Math.floor(key / classes.length), c = key % classes.length;
    for (const j of [r, c]) sums.set(j, (sums.get(j) || 0) + (r === c ? 1e-6 : value));
  }
  const all = [...sums.keys()].sort((x, y) => sums.get(y) - sums.get(x) || x - y);
  const most = Math.max(4, Math.min(LABELS_SHOWN, Math.floor((width - NAMES) / CELL)));
  return { shown: all.slice(0, most).sort((x, y) => x - y), all: all.length };
}
