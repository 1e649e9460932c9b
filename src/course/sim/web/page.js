"use strict";
// Draws the pictures of a run from the numbers in #data, as SVG as wide as the page. No network.
const data = JSON.parse(document.getElementById("data").textContent);
const LABEL = 84, ROW = 26, GAP = 6, AXIS = 22;

const say = (x) => (x >= 100 ? x.toFixed(0) : x >= 1 ? x.toFixed(2) : x.toFixed(3));
const percent = (x) => `${(100 * x).toFixed(0)} %`;
const escape = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

function ticks(end, most) {
  const raw = end / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= raw);
  const found = [];
  for (let x = 0; x <= end * 1.0001; x += step) found.push(x);
  return found;
}

// A filled step line from `low` to `high`, both per bin and in units of the row's height.
function area(low, high, x, y, width, height, kind) {
  const n = high.length, at = (i) => (x + (i * width) / n).toFixed(1), up = (v) => (y + height * (1 - v)).toFixed(1);
  let there = "", back = "";
  for (let i = 0; i < n; i++) {
    there += `L${at(i)} ${up(high[i])}H${at(i + 1)}`;
    back = `L${at(i + 1)} ${up(low[i])}H${at(i)}` + back;
  }
  return `<path class="${kind}" d="M${at(0)} ${up(low[0])}${there}${back}Z"/>`;
}

function timeAxis(x, y, width) {
  return ticks(data.end_s, Math.max(2, Math.floor(width / 90))).map((t, i) => {
    const px = x + (t / data.end_s) * width;
    return `<text class="muted" x="${px}" y="${y + 16}" text-anchor="${i ? "middle" : "start"}">${+t.toFixed(3)}${i ? "" : " s"}</text>`;
  }).join("");
}

function marks(x, y, width, height) {
  return data.notes.map(([time, kind, worker]) => {
    const px = x + (time / data.end_s) * width;
    return `<line class="mark" x1="${px}" x2="${px}" y1="${y}" y2="${y + height}"><title>${say(time)} s: ${escape(`${kind} ${worker}`)}</title></line>`;
  }).join("");
}

// Rows of stacked areas over time. rows: {name, series: [[kind, values, noun]...], line, most}.
function chart(id, rows, about, show) {
  const box = document.getElementById(id), width = box.clientWidth, plot = width - LABEL - 8;
  if (!rows.length || plot < 40) return;
  const height = rows.length * (ROW + GAP);
  const body = rows.map((row, number) => {
    const y = number * (ROW + GAP), most = row.most || 1;
    let low = row.series[0][1].map(() => 0), parts = "";
    for (const [kind, values] of row.series) {
      const high = values.map((v, i) => Math.min(low[i] + v / most, 1));
      parts += area(low, high, LABEL, y, plot, ROW, kind);
      low = high;
    }
    if (row.line) {
      const points = row.line.values.map((v, i) => v ? `${(LABEL + ((i + 0.5) * plot) / row.line.values.length).toFixed(1)},${(y + ROW * (1 - v / row.line.most)).toFixed(1)}` : "").filter(Boolean);
      parts += `<polyline class="overlap" points="${points.join(" ")}"/>`;
    }
    return `<text x="0" y="${y + ROW / 2 + 4}">${escape(row.name)}</text><rect class="row" x="${LABEL}" y="${y}" width="${plot}" height="${ROW}"/>${parts}`;
  }).join("");
  box.innerHTML = `<svg viewBox="0 0 ${width} ${height + AXIS}" height="${height + AXIS}" role="img" aria-label="${escape(about)}">${body}${marks(LABEL, 0, plot, height)}${timeAxis(LABEL, height, plot)}<line class="hair" visibility="hidden" y1="0" y2="${height}"/></svg><div class="read"></div>`;
  const svg = box.firstChild, hair = svg.querySelector(".hair"), read = box.lastChild;
  svg.onpointermove = (event) => {
    const at = svg.getBoundingClientRect(), x = event.clientX - at.left - LABEL;
    const row = rows[Math.min(rows.length - 1, Math.max(0, Math.floor((event.clientY - at.top) / (ROW + GAP))))];
    const inside = x >= 0 && x < plot, n = row.series[0][1].length, bin = Math.floor((x / plot) * n);
    hair.setAttribute("visibility", inside ? "visible" : "hidden");
    hair.setAttribute("x1", LABEL + x);
    hair.setAttribute("x2", LABEL + x);
    read.textContent = inside ? `${row.name} at ${say((x / plot) * data.end_s)} s: ${show(row, bin)}` : "";
  };
  svg.onpointerleave = () => { hair.setAttribute("visibility", "hidden"); read.textContent = ""; };
}

const shares = (row, bin) => row.series.map(([, values, noun]) => `${noun} ${percent(values[bin])}`).join(", ");
const counts = (row, bin) => row.series.map(([, values, noun]) => `${values[bin]} ${noun}`).join(", ") +
  (row.line ? `, mean overlap ${row.line.values[bin]} blocks` : "");
const highest = (...lists) => Math.max(1, ...lists.map((list) => Math.max(...list)));

function cdf(one, width) {
  const height = 200, left = 36, bottom = 24, top = 8, plot = width - left - 12;
  if (!one.ms.length) return `<h3>${one.name}, ms</h3><p>No request has one.</p>`;
  const end = Math.max(one.ms[one.ms.length - 1], 1e-9) * 1.02, n = one.ms.length - 1;
  const x = (ms) => left + (plot * Math.min(ms, end)) / end, y = (share) => top + (height - top - bottom) * (1 - share);
  const line = one.ms.map((ms, i) => `${x(ms).toFixed(1)},${y(i / n).toFixed(1)}`).join(" ");
  const grid = [0, 0.5, 0.9, 1].map((s) => `<line class="axis" x1="${left}" x2="${width - 12}" y1="${y(s)}" y2="${y(s)}"/><text class="muted" x="${left - 6}" y="${y(s) + 4}" text-anchor="end">${s}</text>`).join("");
  const below = ticks(end, Math.max(2, Math.floor(plot / 80))).map((t) => `<text class="muted" x="${x(t)}" y="${height - 6}" text-anchor="middle">${+t.toPrecision(4)}</text>`).join("");
  const slo = one.slo !== null && one.slo <= end ? `<line class="slo" x1="${x(one.slo)}" x2="${x(one.slo)}" y1="${top}" y2="${y(0)}"/>` : "";
  return `<h3>${one.name}, ms</h3><svg viewBox="0 0 ${width} ${height}" height="${height}" role="img" aria-label="${one.name}: distribution">${grid}${below}<polyline class="curve" points="${line}"/>${slo}</svg>`;
}

function draw() {
  const cdfs = document.getElementById("cdfs");
  cdfs.innerHTML = data.cdfs.map(() => "<div></div>").join("");
  [...cdfs.children].forEach((cell, i) => { cell.innerHTML = cdf(data.cdfs[i], cell.clientWidth); });
  const workers = data.workers, asked = highest(...workers.map((w) => w.misses.map((m, i) => m + w.hits[i])));
  const there = highest(...workers.map((w) => w.running.map((r, i) => r + w.waiting[i])));
  const overlap = highest(...workers.map((w) => w.overlap));
  chart("pools", data.pools.map((p) => ({ name: p.name, series: [["b", p.busy, "busy"]] })), "Utilisation of pools", shares);
  chart("timeline", workers.map((w) => ({ name: w.name, series: [["a", w.prefill, "prompts"], ["b", w.decode, "decodes"]] })), "What workers ran", shares);
  chart("choices", workers.map((w) => ({ name: w.name, most: asked, line: { values: w.overlap, most: overlap }, series: [["b", w.misses, "without overlap"], ["c", w.hits, "with overlap"]] })), "Where requests were sent", counts);
  chart("kv", workers.map((w) => ({ name: w.name, series: [["a", w.used, "in use"], ["c", w.cached, "cached"]] })), "KV blocks of workers", shares);
  chart("queues", workers.map((w) => ({ name: w.name, most: there, series: [["b", w.running, "running"], ["a", w.waiting, "waiting"]] })), "Requests at workers", counts);
}

let drawn = 0;
new ResizeObserver(() => {
  const width = document.querySelector("main").clientWidth;
  if (width !== drawn) { drawn = width; draw(); }
}).observe(document.querySelector("main"));
