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
