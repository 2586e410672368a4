/* A timeline as it is drawn: rows of ranks, each a row of passes and, where its ops are known and it is open, a
 * lane for each stream. Times are nanoseconds from the start of the step. */

const PASS_PAINTS = { forward: "forward", backward: "backward", "weight gradient": "weight", "gradient sync": "dp", recompute: "recompute", optimizer: "optimizer" };
const TAG_PAINTS = { F: "forward", B: "backward", I: "backward", W: "weight", R: "recompute", O: "optimizer", S: "dp" };
const passColor = (kind) => paint(PASS_PAINTS[kind] || "other");
const partPaint = (part) => paint(part.replace("exposed_", ""));
const WHY = ["started when its stream was free", "waited behind an earlier op of its stream", "waited for an op that it depends on", "waited to be issued by the host"];

/* Spans of one row: from, to, and what each is; share: how much of each is there. Sorted by `from`. work: of all
 * before each, summed. */
function lane(name, n, from, to, color, label, item, share) {
  const work = new Float64Array(n + 1);
  for (let i = 0, end = 0; i < n; i++) {
    work[i + 1] = work[i] + Math.max(0, to[i] - Math.max(from[i], end)) * (share ? share(i) : 1);
    end = Math.max(end, to[i]);
  }
  return { name, n, from, to, color, label, item, share, work };
}

function sums(deltas) {
  let at = 0;
  return Float64Array.from(deltas, (d) => (at += d));
}

/* Starts and ends in place of steps and lengths. */
function decodeIntervals(columns) {
  if (columns.to) return;
  columns.from = sums(columns.from);
  columns.to = columns.from.map((at, i) => at + columns.length[i]);
}

/* Ops of a rank with absolute starts and ends. */
function decodeOps(t, ops) {
  const start = sums(ops.start);
  const end = Float64Array.from(ops.length, (l, i) => (l < 0 ? t.window : start[i] + l));
  return { ...ops, start, end, n: start.length };
}

function passLane(t, r) {
  const b = r.boxes;
  const letter = { forward: "F", backward: "B", "weight gradient": "W", recompute: "R" }, alone = { optimizer: "opt", "gradient sync": "" };
  return lane("", b.mb.length, b.from, b.to, (i) => passColor(t.kinds[b.kind[i]]),
    (i) => alone[t.kinds[b.kind[i]]] ?? letter[t.kinds[b.kind[i]]] + b.mb[i], (i) => ({ rank: r, pass: i }), (i) => b.share[i] / 100);
}

function stripLane(t, r) {
  const s = r.strips;
  const order = [...s.from.keys()].sort((a, b) => s.from[a] - s.from[b]);
  const pick = (column) => order.map((i) => column[i]);
  const parts = pick(s.part);
  const share = pick(s.share);
  return lane("", order.length, pick(s.from), pick(s.to), (i) => partPaint(t.parts[parts[i]]), () => "", (i) => ({ rank: r, strip: order[i] }), (i) => share[i] / 100);
}

/* Ops of one stream lie behind each other, but where two overlap the later one is on top. */
function streamLanes(t, r) {
  const ops = r.decoded;
  const by = new Map();
  for (let i = 0; i < ops.n; i++) {
    if (ops.end[i] <= 0 || ops.start[i] >= t.window) continue;
    if (!by.has(ops.stream[i])) by.set(ops.stream[i], []);
    by.get(ops.stream[i]).push(i);
  }
  return [...by.keys()].sort((a, b) => (a === t.streams.length - 1 ? -1 : b === t.streams.length - 1 ? 1 : a - b)).map((stream) => {
    const index = by.get(stream).sort((a, b) => ops.start[a] - ops.start[b] || a - b);
    return lane(t.streams[stream], index.length, Float64Array.from(index, (i) => ops.start[i]), Float64Array.from(index, (i) => ops.end[i]),
      (k) => paint(t.stream_paints[stream] === "forward" ? TAG_PAINTS[t.tags[ops.tag[index[k]]][0].toUpperCase()] || "other" : t.stream_paints[stream]),
      (k) => unitName(t, ops, index[k]), (k) => ({ rank: r, op: index[k] }));
  });
}

/* "all-gather B3, layer 7": what it is, of which pass. */
function unitName(t, ops, i) {
  const tag = t.tags[ops.tag[i]], pass = /^(optimizer|sync)/.test(tag) ? "" : ` ${tag.length > 1 ? "R" : tag}${ops.mb[i]}`;
  return t.names[ops.name[i]] + pass + (ops.layer[i] >= 0 ? `, layer ${ops.layer[i]}` : "");
}

/* Where messages of an op go to, or come from: { rank, op, isOut }. */
function messagesOf(t, r, op) {
  if (!t.messageIndex) {
    t.messageIndex = new Map();
    const m = t.messages, add = (rank, i, other) => {
      const key = `${rank} ${i}`;
      t.messageIndex.set(key, [...(t.messageIndex.get(key) || []), other]);
    };
    m.from.forEach((from, i) => {
      add(from, m.from_op[i], { rank: t.ranks[m.to[i]], op: m.to_op[i], isOut: true });
      add(m.to[i], m.to_op[i], { rank: t.ranks[from], op: m.from_op[i], isOut: false });
    });
  }
  return t.messageIndex.get(`${t.ranks.indexOf(r)} ${op}`) || [];
}

/* The rows to draw: { text, lanes: [top, height, lane], height }. */
function layRows(t) {
  const rows = [];
  for (const r of t.ranks) {
    decodeIntervals(r.boxes);
    decodeIntervals(r.strips);
    if (r.ops && !r.decoded && r.isOpen) r.decoded = decodeOps(t, r.ops);
    r.passes = r.passes || passLane(t, r);
    r.lost = r.lost || stripLane(t, r);
    rows.push({ rank: r, kind: "rank", height: 30, text: `rank ${r.rank} · stage ${r.stage}`, lanes: [[2, 18, r.passes], [21, 6, r.lost]] });
    if (!r.isOpen || !r.decoded) continue;
    r.lanes = r.lanes || streamLanes(t, r);
    for (const l of r.lanes) rows.push({ rank: r, kind: "stream", height: 20, text: l.name, lanes: [[2, 16, l]] });
  }
  let y = 0;
  for (const row of rows) {
    row.y = y;
    y += row.height;
  }
  return rows;
}

/* What is known of an item, line by line. */
function describe(t, item) {
  const r = item.rank, of = r.stands_for > 1 ? ` (stands for ${r.stands_for} ranks)` : "";
  const where = `rank ${r.rank}, stage ${r.stage}${of}`;
  if (item.pass !== undefined) {
    const b = r.boxes, i = item.pass, kind = t.kinds[b.kind[i]], of = /^(optimizer|gradient sync)$/.test(kind) ? "" : ` of micro-batch ${b.mb[i]}, chunk ${b.chunk[i]}`;
    return `${kind}${of}\n${where}\n${time((b.to[i] - b.from[i]) * 1e-9)}, ${b.share[i]} % of it with a kernel, from ${clock(b.from[i] * 1e-9)}`;
  }
  if (item.strip !== undefined) {
    const s = r.strips, i = item.strip;
    return `${words(t.parts[s.part[i]])}\n${where}\n${time(((s.to[i] - s.from[i]) * s.share[i] * 1e-9) / 100)} in ${time((s.to[i] - s.from[i]) * 1e-9)}, from ${clock(s.from[i] * 1e-9)}`;
  }
  const o = r.decoded, i = item.op, lines = [unitName(t, o, i), `${where}, stream ${t.streams[o.stream[i]]}, chunk ${o.chunk[i]}`,
    o.length[i] < 0 ? "not over when the simulation stopped" : `${time(o.length[i] * 1e-9)}, from ${clock(o.start[i] * 1e-9)}`];
  if (o.wait[i] < 0) lines.push("its partners never came");
  else if (o.wait[i] > 0) lines.push(`of that ${time(o.wait[i] * 1e-9)} ${o.stream[i] === 0 ? "as others ran beside it" : "waiting for its partners"}`);
  lines.push(WHY[o.why[i]] + (o.cause[i] > 0 ? ": " + unitName(t, o, i - o.cause[i]) : ""));
  for (const m of messagesOf(t, r, i)) lines.push(`message ${m.isOut ? "to" : "from"} rank ${m.rank.rank}`);
  return lines.join("\n");
}
/* The timeline on a canvas: zoom, pan, search, and what the chosen op waited for. */

const LABEL_WIDTH = 128, AXIS_HEIGHT = 24;

/* Black or white, whichever is read better on a colour (its relative luminance, WCAG 2.1). */
function inkOn(color) {
  const [r, g, b] = [1, 3, 5].map((i) => (parseInt(color.slice(i, i + 2), 16) / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.26 ? paint("black") : paint("white");
}

/* First item from `low` on whose end lies behind `at`: ends of a lane rise, but for overlaps, which begin before it. */
function firstVisible(l, at, low = 0) {
  let high = l.n;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (l.to[middle] < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

function timelineView(t) {
  const view = { from: 0, to: t.window, hit: null, chosen: null, found: [], at: -1 };
  const canvas = el("canvas", { tabindex: 0, "aria-label": "timeline: arrows move, plus and minus zoom, 0 shows all" });
  const space = el("div", { class: "space" }), box = el("div", { class: "timeline" }, canvas, space);
  const told = el("div", { class: "selected quiet", "aria-live": "polite" }, "Click an op to see what it waited for.");
  const css = (name) => paint(name.slice(2));
  let rows = layRows(t), pending = false, width = 0, height = 0;

  const x = (ns) => LABEL_WIDTH + ((ns - view.from) / (view.to - view.from)) * (width - LABEL_WIDTH);
  const ns = (px) => view.from + ((px - LABEL_WIDTH) / (width - LABEL_WIDTH)) * (view.to - view.from);
  const redraw = () => { if (!pending) { pending = true; requestAnimationFrame(draw); } };

  function measure() {
    const last = rows[rows.length - 1];
    const total = AXIS_HEIGHT + last.y + last.height + 4;
    width = Math.max(320, box.clientWidth || 1200);
    height = Math.min(total, 620);
    box.style.height = height + 2 + "px";
    space.style.height = Math.max(0, total - height) + "px";
    const dense = window.devicePixelRatio || 1;
    canvas.width = width * dense; canvas.height = height * dense;
    canvas.style.width = width + "px"; canvas.style.height = height + "px";
    redraw();
  }

  function drawLane(g, l, top, size, isNamed) {
    const perPixel = (view.to - view.from) / (width - LABEL_WIDTH);
    for (let i = firstVisible(l, view.from); i < l.n && l.from[i] <= view.to; i++) {
      const left = Math.max(LABEL_WIDTH, x(l.from[i])), right = Math.min(width, x(l.to[i]));
      g.fillStyle = l.color(i);
      if (l.to[i] - l.from[i] < perPixel) { /* those that begin within a pixel are one, as dark as they fill it */
        const pixel = Math.floor(left), next = Math.max(i + 1, firstVisible(l, ns(pixel + 1), i));
        g.globalAlpha = Math.min(1, Math.max(0.15, (l.work[next] - l.work[i]) / perPixel));
        g.fillRect(pixel, top, 1, size);
        i = next - 1;
        continue;
      }
      const share = l.share ? Math.max(0.15, l.share(i)) : 1;
      g.globalAlpha = share;
      g.fillRect(left, top, right - left - (right - left > 4 ? 0.7 : 0), size);
      g.globalAlpha = 1;
      if (!isNamed || right - left < 18) continue;
      const name = [l.label(i), l.label(i).replace(/^[A-Z](?=\d+$)/, "")].find((text) => g.measureText(text).width < right - left - 4);
      if (name) { g.fillStyle = share < 0.5 ? css("--text") : inkOn(l.color(i)); g.fillText(name, left + 3, top + size / 2 + 4); }
    }
    g.globalAlpha = 1;
  }

  function drawFound(g, scroll) {
    g.strokeStyle = css("--bad"); g.lineWidth = 2;
    for (const item of view.found) {
      const at = placeOf(item);
      if (at && at.right >= LABEL_WIDTH && at.left <= width) g.strokeRect(at.left, at.top - scroll, Math.max(3, at.right - at.left), at.size);
    }
  }

  /* Where an op is on the drawing; null: its rank is closed. */
  function placeOf(item) {
    if (item.op === undefined) return null;
    const o = item.rank.decoded, row = rows.find((r) => r.rank === item.rank && r.kind === "stream" && r.text === t.streams[o.stream[item.op]]);
    return row ? { left: Math.max(LABEL_WIDTH, x(o.start[item.op])), right: x(o.end[item.op]), top: AXIS_HEIGHT + row.y + 2, size: row.height - 4 } : null;
  }

  function drawChosen(g, scroll) {
    const item = view.chosen, at = item && placeOf(item);
    if (!at) return;
    g.strokeStyle = css("--text"); g.lineWidth = 2;
    g.strokeRect(at.left, at.top - scroll, Math.max(3, at.right - at.left), at.size);
    const o = item.rank.decoded, cause = o.cause[item.op] > 0 && placeOf({ rank: item.rank, op: item.op - o.cause[item.op] });
    g.setLineDash([4, 3]);
    if (cause) {
      g.strokeRect(cause.left, cause.top - scroll, Math.max(3, cause.right - cause.left), cause.size);
      drawArrow(g, cause.right, cause.top + cause.size / 2 - scroll, at.left, at.top + at.size / 2 - scroll);
    }
    g.setLineDash([]);
    for (const m of messagesOf(t, item.rank, item.op)) {
      const other = placeOf(m) || placeOfRank(m);
      const [from, to] = m.isOut ? [at, other] : [other, at];
      if (other) drawArrow(g, from.left, from.top + from.size / 2 - scroll, to.right, to.top + to.size / 2 - scroll);
    }
  }

  function drawArrow(g, x0, y0, x1, y1) {
    const length = Math.hypot(x1 - x0, y1 - y0) || 1, ux = ((x0 - x1) / length) * 7, uy = ((y0 - y1) / length) * 7;
    g.beginPath(); g.moveTo(x0, y0); g.lineTo(x1, y1);
    g.moveTo(x1 + ux - 0.5 * uy, y1 + uy + 0.5 * ux); g.lineTo(x1, y1); g.lineTo(x1 + ux + 0.5 * uy, y1 + uy - 0.5 * ux);
    g.stroke();
  }

  /* Where its time is in the row of its rank, which is closed. */
  function placeOfRank(item) {
    const row = rows.find((r) => r.rank === item.rank && r.kind === "rank");
    if (!row || !item.rank.ops) return null;
    item.rank.decoded = item.rank.decoded || decodeOps(t, item.rank.ops);
    const o = item.rank.decoded;
    return { left: Math.max(LABEL_WIDTH, x(o.start[item.op])), right: x(o.end[item.op]), top: AXIS_HEIGHT + row.y + 2, size: row.height - 4 };
  }

  function drawAxis(g) {
    g.fillStyle = css("--ground"); g.fillRect(0, 0, width, AXIS_HEIGHT);
    g.fillStyle = css("--quiet"); g.strokeStyle = css("--line"); g.lineWidth = 1;
    for (const v of ticks(view.from, view.to, Math.max(3, Math.floor(width / 160)))) {
      g.beginPath(); g.moveTo(x(v), AXIS_HEIGHT - 6); g.lineTo(x(v), AXIS_HEIGHT); g.stroke();
      g.fillText(clock(v * 1e-9), Math.min(x(v) + 3, width - 60), 14);
    }
  }

  function draw() {
    pending = false;
    const g = canvas.getContext("2d"), dense = window.devicePixelRatio || 1, scroll = box.scrollTop;
    g.setTransform(dense, 0, 0, dense, 0, 0);
    g.font = "11px system-ui, sans-serif";
    g.fillStyle = css("--ground"); g.fillRect(0, 0, width, height);
    for (const row of rows) {
      const top = AXIS_HEIGHT + row.y - scroll;
      if (top + row.height < AXIS_HEIGHT || top > height) continue;
      g.fillStyle = css("--idle"); g.fillRect(LABEL_WIDTH, top + 2, width - LABEL_WIDTH, row.height - 3);
      for (const [offset, size, l] of row.lanes) drawLane(g, l, top + offset, size, size > 8);
      g.fillStyle = css("--ground"); g.fillRect(0, top, LABEL_WIDTH, row.height);
      g.fillStyle = css(row.kind === "rank" ? "--text" : "--quiet");
      const mark = row.kind === "stream" ? "    " : row.rank.ops ? (row.rank.isOpen ? "▾ " : "▸ ") : "  ";
      g.fillText(mark + row.text, 2, top + 15);
    }
    drawFound(g, scroll);
    drawChosen(g, scroll);
    drawAxis(g);
    canvas.dataset.from = view.from; canvas.dataset.to = view.to; canvas.dataset.rows = rows.length;
  }

  function show(from, to) {
    const size = Math.min(t.window, Math.max(t.window * 1e-7, to - from));
    view.from = Math.max(0, Math.min(from, t.window - size));
    view.to = view.from + size;
    redraw();
  }
  function zoom(factor, around) {
    const at = around === undefined ? (view.from + view.to) / 2 : around;
    show(at - (at - view.from) * factor, at + (view.to - at) * factor);
  }
  const pan = (share) => show(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from));

  function rowAt(event) {
    const bounds = canvas.getBoundingClientRect(), y = event.clientY - bounds.top - AXIS_HEIGHT + box.scrollTop;
    return { row: event.clientY - bounds.top > AXIS_HEIGHT && rows.find((r) => y >= r.y && y < r.y + r.height), y, x: event.clientX - bounds.left };
  }
  function itemAt(event) {
    const p = rowAt(event);
    if (!p.row || p.x < LABEL_WIDTH) return null;
    const at = ns(p.x), slack = (2 * (view.to - view.from)) / width;
    for (const [offset, size, l] of p.row.lanes) {
      const inside = p.y - p.row.y - offset;
      if (inside < 0 || inside > size) continue;
      let best = null;
      for (let i = firstVisible(l, at - slack); i < l.n && l.from[i] <= at + slack; i++) {
        const miss = Math.max(0, l.from[i] - at, at - l.to[i]);
        if (!best || miss < best.miss) best = { i, miss };
      }
      if (best) return l.item(best.i);
    }
    return null;
  }

  function choose(item) {
    view.chosen = item;
    told.textContent = item ? describe(t, item) : "Click an op to see what it waited for.";
    told.classList.toggle("quiet", !item);
    redraw();
  }
  function open(rank, isOpen) {
    if (!rank.ops) return;
    rank.isOpen = isOpen;
  }
  function openAll(isOpen) {
    for (const r of t.ranks) open(r, isOpen);
    rows = layRows(t); measure();
  }

  function search(text) {
    view.found = []; view.at = -1;
    const wanted = text.trim().toLowerCase();
    if (wanted) {
      const names = new Set(t.names.map((n, i) => (n.toLowerCase().includes(wanted) ? i : -1)));
      for (const r of t.ranks.filter((rank) => rank.isOpen && rank.decoded))
        for (let i = 0; i < r.decoded.n && view.found.length < 5000; i++) if (names.has(r.decoded.name[i]) && r.decoded.end[i] > 0) view.found.push({ rank: r, op: i });
    }
    hits.textContent = wanted ? `${view.found.length} ops` : "";
    redraw();
  }
  function next() {
    if (!view.found.length) return;
    view.at = (view.at + 1) % view.found.length;
    const item = view.found[view.at], o = item.rank.decoded, span = Math.max(o.end[item.op] - o.start[item.op], t.window * 1e-6);
    show(o.start[item.op] - 6 * span, o.end[item.op] + 6 * span);
    box.scrollTop = Math.max(0, (placeOf(item) || { top: 0 }).top - 200);
    choose(item);
  }

  let drag = null;
  canvas.addEventListener("pointerdown", (e) => { drag = { x: e.clientX, from: view.from, to: view.to, moved: false }; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointerup", (e) => {
    const wasClick = drag && !drag.moved;
    drag = null;
    if (!wasClick) return;
    const p = rowAt(e);
    if (p.row && p.x < LABEL_WIDTH) { open(p.row.rank, !p.row.rank.isOpen); rows = layRows(t); measure(); }
    else choose(itemAt(e));
  });
  canvas.addEventListener("pointermove", (e) => {
    if (drag && Math.abs(e.clientX - drag.x) > 3) {
      drag.moved = true;
      const by = ((drag.x - e.clientX) / (width - LABEL_WIDTH)) * (drag.to - drag.from);
      show(drag.from + by, drag.to + by);
      return;
    }
    const item = itemAt(e);
    tip(e, item && describe(t, item));
  });
  canvas.addEventListener("pointerleave", () => tip(null, null));
  canvas.addEventListener("dblclick", (e) => zoom(0.25, ns(rowAt(e).x)));
  canvas.addEventListener("wheel", (e) => {
    if (!e.ctrlKey && !e.metaKey && !e.shiftKey) return;
    e.preventDefault();
    if (e.shiftKey) pan(Math.sign(e.deltaY + e.deltaX) * 0.1);
    else zoom(e.deltaY > 0 ? 1.25 : 0.8, ns(rowAt(e).x));
  }, { passive: false });
  const KEYS = { ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), a: () => pan(-0.2), d: () => pan(0.2), "+": () => zoom(0.5), "=": () => zoom(0.5), w: () => zoom(0.5),
    "-": () => zoom(2), s: () => zoom(2), 0: () => show(0, t.window), ArrowUp: () => (box.scrollTop -= 60), ArrowDown: () => (box.scrollTop += 60) };
  canvas.addEventListener("keydown", (e) => { if (KEYS[e.key] && !e.ctrlKey && !e.metaKey) { e.preventDefault(); KEYS[e.key](); } });
  box.addEventListener("scroll", redraw);

  const hits = el("span", { class: "quiet" });
  const input = el("input", { type: "search", placeholder: "find ops by name", "aria-label": "find ops by name", oninput: () => search(input.value),
    onkeydown: (e) => e.key === "Enter" && next() });
  const known = t.ranks.filter((r) => r.ops).length;
  const tools = el("div", { class: "tools" }, button("+", () => zoom(0.5), "zoom in"), button("−", () => zoom(2), "zoom out"), button("all", () => show(0, t.window), "the whole step"),
    button("streams", () => openAll(true), "a row for each stream"), button("ranks", () => openAll(false), "a row for each rank"), input, hits,
    el("span", { class: "quiet" }, `${t.ranks.length} of ${t.n_ranks} ranks${known < t.ranks.length ? `, ops of the first ${known}` : ""}; Ctrl and wheel zooms, drag moves, a click on a rank opens its streams`));
  const colors = legend([...t.kinds.filter((k, i) => t.ranks.some((r) => r.boxes.kind.includes(i) || (k === "weight gradient" && r.ops && r.ops.tag.includes(t.tags.indexOf("W"))))).map((k) => [k, passColor(k)]),
    ...t.parts.filter((k, i) => t.ranks.some((r) => r.strips.part.includes(i))).map((k) => [words(k), partPaint(k)])]);
  if (t.ranks.length) open(t.ranks[0], true);
  rows = layRows(t);
  new ResizeObserver(measure).observe(box);
  return [tools, box, told, colors];
}
