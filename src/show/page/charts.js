/* Charts of the views, as SVG. */

const colorOf = (i) => paint("series-" + (i % 9));

/* Values that a person would write on an axis, between two others; whole numbers of a unit. */
function ticks(low, high, n, unit) {
  const raw = (high - low) / (n || 6) / (unit || 1) || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((m) => m * power >= raw * 0.999) * power * (unit || 1);
  const all = [];
  for (let x = Math.ceil(low / step) * step; x <= high + step * 1e-9; x += step) all.push(Math.abs(x) < step * 1e-9 ? 0 : x);
  return all;
}
function logTicks(low, high, unit) {
  const all = [];
  if (unit) {
    const powers = Math.floor(Math.log2(high)) - Math.ceil(Math.log2(low)), every = Math.max(1, Math.ceil(powers / 10));
    for (let p = Math.ceil(Math.log2(low)); p <= Math.log2(high) + 1e-9; p += every) all.push(2 ** p);
    return all;
  }
  for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++)
    for (const m of [1, 2, 5]) if (m * 10 ** p >= low * 0.999 && m * 10 ** p <= high * 1.001) all.push(m * 10 ** p);
  return all.length > 9 ? all.filter((x) => Math.abs(Math.log10(x) % 1) < 1e-9) : all;
}
function scale(low, high, from, to, isLog) {
  const f = isLog ? Math.log : (x) => x;
  if (!(high > low)) high = low + (Math.abs(low) || 1) * 0.1;
  return (x) => from + ((f(x) - f(low)) / (f(high) - f(low))) * (to - from);
}

/* A frame with axes. x, y: { low, high, log, show, name }. */
function frame(width, height, x, y) {
  const left = 92, right = 18, top = 12, bottom = 44;
  const at = { x: scale(x.low, x.high, left, width - right, x.log), y: scale(y.low, y.high, height - bottom, top, y.log) };
  const node = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img" });
  for (const v of x.ticks || (x.log ? logTicks(x.low, x.high, x.unit) : ticks(x.low, x.high, 8, x.unit)))
    node.append(svg("line", { class: "axis", x1: at.x(v), x2: at.x(v), y1: top, y2: height - bottom }),
      svg("text", { class: "tick", x: at.x(v), y: height - bottom + 16, "text-anchor": "middle" }, x.show(v)));
  for (const v of y.log ? logTicks(y.low, y.high) : ticks(y.low, y.high, 6, y.unit))
    node.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: at.y(v), y2: at.y(v) }),
      svg("text", { class: "tick", x: left - 8, y: at.y(v) + 4, "text-anchor": "end" }, y.show(v)));
  node.append(svg("text", { x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }, x.name),
    svg("text", { transform: `translate(14 ${(top + height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, y.name));
  return { node, at, left, right: width - right, top, bottom: height - bottom };
}
const range = (values) => {
  const finite = values.filter((v) => Number.isFinite(v));
  return { low: Math.min(...finite), high: Math.max(...finite) };
};
const wider = ({ low, high }, isLog) => isLog ? { low: low / 1.15, high: high * 1.15 }
  : { low: low - 0.06 * (high - low || Math.abs(low) || 1), high: high + 0.06 * (high - low || Math.abs(high) || 1) };

/* points: { x, y, text, color, chosen, open, choose }. */
function scatter(points, x, y, options) {
  const o = { width: 1300, height: 420, ...options };
  const all = points.filter((p) => Number.isFinite(p.x) && Number.isFinite(p.y));
  if (!all.length) return null;
  const f = frame(o.width, o.height, { ...wider(range(all.map((p) => p.x)), x.log), ...x }, { ...wider(range(all.map((p) => p.y)), y.log), ...y });
  if (o.diagonal) {
    const low = Math.max(...["x", "y"].map((k) => range(all.map((p) => p[k])).low)), high = Math.min(...["x", "y"].map((k) => range(all.map((p) => p[k])).high));
    f.node.append(svg("line", { x1: f.at.x(low), y1: f.at.y(low), x2: f.at.x(high), y2: f.at.y(high), stroke: "currentColor", "stroke-dasharray": "4 4" }));
  }
  if (o.line) f.node.append(svg("polyline", { fill: "none", stroke: "var(--quiet)", points: o.line.map((p) => `${f.at.x(p.x)},${f.at.y(p.y)}`).join(" ") }));
  for (const p of all)
    f.node.append(withTip(svg("circle", { class: "dot", cx: f.at.x(p.x), cy: f.at.y(p.y), r: p.chosen ? 7 : 4.5, fill: p.color || colorOf(0), "fill-opacity": p.open ? 0.15 : 0.8, stroke: p.open ? p.color || colorOf(0) : null,
      tabindex: 0, "aria-label": p.text, onclick: p.choose, onkeydown: p.choose && ((e) => e.key === "Enter" && p.choose(e)) }), p.text));
  return f.node;
}

/* series: { name, points: [{ x, y, text }], dashed }. */
function lines(series, x, y, options) {
  const o = { width: 1300, height: 420, ...options };
  const all = series.flatMap((s) => s.points).filter((p) => Number.isFinite(p.y) && (!y.log || p.y > 0) && (!x.log || p.x > 0));
  if (!all.length) return null;
  const f = frame(o.width, o.height, { ...range(all.map((p) => p.x)), ...x }, { ...wider(range(all.map((p) => p.y)), y.log), ...y });
  series.forEach((s, i) => {
    const shown = s.points.filter((p) => all.includes(p));
    f.node.append(svg("polyline", { fill: "none", stroke: colorOf(i), "stroke-width": 2, "stroke-dasharray": s.dashed ? "5 4" : null,
      points: shown.map((p) => `${f.at.x(p.x)},${f.at.y(p.y)}`).join(" ") }));
    for (const p of shown) f.node.append(withTip(svg("circle", { class: "dot", cx: f.at.x(p.x), cy: f.at.y(p.y), r: 3.5, fill: colorOf(i), tabindex: 0, "aria-label": p.text }), p.text));
  });
  return [f.node, legend(series.map((s, i) => [s.name, colorOf(i)]))];
}

/* Areas on top of each other, as steps. at: x of each sample; layers: [name, values, color]; limit: a line. */
function areas(at, layers, end, limit, x, y) {
  const width = 1300, height = 360;
  const tops = layers.reduce((sums, [, values]) => sums.map((s, i) => s + values[i]), at.map(() => 0));
  const f = frame(width, height, { low: 0, high: end, ...x }, { low: 0, high: 1.06 * Math.max(limit || 0, ...tops), ...y });
  let below = at.map(() => 0);
  const step = (values, i) => `${f.at.x(at[i])},${f.at.y(values[i])} ${f.at.x(i + 1 < at.length ? at[i + 1] : end)},${f.at.y(values[i])}`;
  for (const [name, values, color] of layers) {
    const edge = below.map((b, i) => b + values[i]);
    const up = at.map((_, i) => step(edge, i));
    const back = at.map((_, i) => step(below, i).split(" ").reverse().join(" ")).reverse();
    f.node.append(withTip(svg("polygon", { fill: color, points: [...up, ...back].join(" ") }), name));
    below = edge;
  }
  if (limit) f.node.append(svg("line", { x1: f.left, x2: f.right, y1: f.at.y(limit), y2: f.at.y(limit), stroke: "var(--bad)", "stroke-dasharray": "6 4" }));
  return f.node;
}

/* One bar of parts: [name, value, color, text]. */
function stacked(parts, whole) {
  const all = parts.filter((p) => p[1] > 0), w = 1300, sum = Math.max(whole, all.reduce((s, p) => s + p[1], 0)), rest = sum - all.reduce((s, p) => s + p[1], 0);
  if (rest > 1e-4 * sum) all.push(["rest", rest, paint("idle"), percent(rest / sum)]);
  const node = svg("svg", { class: "stacked", viewBox: `0 0 ${w} 34`, preserveAspectRatio: "none", width: "100%", height: 34, role: "img" });
  let x = 0;
  for (const [name, value, color, text] of all) {
    const size = (value / sum) * w;
    node.append(withTip(svg("rect", { x, y: 2, width: Math.max(0.5, size), height: 30, fill: color }), `${name}: ${text}`));
    x += size;
  }
  return [node, legend(all.map(([name, , color]) => [name, color]))];
}

/* A bar inside a table's cell. */
const bar = (share, color) => el("span", { class: "bar", style: `width:${Math.max(1, 160 * Math.min(1, Math.abs(share)))}px;background:${color || "var(--accent)"}` });

/* Parallel axes. columns: { name, get, show }; rows are lines. */
function parallel(columns, rows, choose) {
  const width = 1300, height = 300, top = 26, bottom = 30;
  const node = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img" });
  const scales = columns.map((c) => {
    const values = rows.map(c.get), isNumber = values.every((v) => typeof v === "number");
    const kinds = isNumber ? null : [...new Set(values.map(String))].sort();
    const r = isNumber ? range(values) : { low: 0, high: kinds.length - 1 };
    const s = scale(r.low, r.high, height - bottom, top, false);
    return { at: (v) => s(isNumber ? v : kinds.indexOf(String(v))), ends: isNumber ? [[r.low, c.show(r.low)], [r.high, c.show(r.high)]] : kinds.map((k) => [k, k]) };
  });
  const x = (i) => 50 + (i * (width - 130)) / Math.max(1, columns.length - 1);
  rows.forEach((row, k) => node.append(withTip(svg("polyline", { fill: "none", stroke: k === 0 ? "var(--use-5)" : "var(--accent)", "stroke-opacity": k === 0 ? 1 : 0.35, "stroke-width": k === 0 ? 2.5 : 1.5,
    points: columns.map((c, i) => `${x(i)},${scales[i].at(c.get(row))}`).join(" "), onclick: () => choose && choose(row) }), row.knobs || "")));
  columns.forEach((c, i) => {
    node.append(svg("line", { class: "axis", x1: x(i), x2: x(i), y1: top, y2: height - bottom }), svg("text", { x: x(i), y: 14, "text-anchor": "middle" }, c.name));
    for (const [v, text] of scales[i].ends) node.append(svg("text", { class: "tick", x: x(i) + 5, y: scales[i].at(v) + 4 }, text));
  });
  return node;
}
