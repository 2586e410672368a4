/* The pages of compare, collective, schedule, validate, train, capture and whatif. */

/* Rows of objects as a table of all their plain members. */
function plainTable(rows, label, options) {
  const keys = [...new Set(rows.flatMap((r) => Object.keys(r)))].filter((k) => rows.some((r) => r[k] !== null && typeof r[k] !== "object"));
  return table(keys.map((k) => ({ name: words(k), get: (r) => r[k], word: rows.some((r) => typeof r[k] === "string"), show: showKey(k) })), rows, { label, filter: rows.length > 12, ...options });
}

function viewCompare(r) {
  const unit = { breakdown_s: time, bubble_parts_s: time, critical_path_ps: (v) => (v === null ? "–" : time(v * 1e-12)), memory_bytes: bytes, links: percent };
  return Object.entries(r).filter(([, rows]) => Array.isArray(rows) && rows.length && typeof rows[0] === "object").map(([key, rows]) => {
    if (rows[0].name === undefined) return section(words(key), plainTable(rows, key));
    const show = (x, v) => (v === null || v === undefined ? "–" : typeof v !== "number" ? String(v) : (unit[key] || showKey(x.name))(v));
    const values = Object.keys(rows[0]).filter((k) => !["name", "delta", "change_pct"].includes(k) && typeof rows[0][k] !== "object" || rows.some((x) => typeof x[k] === "number" && !["delta", "change_pct"].includes(k)));
    const most = Math.max(...rows.map((x) => Math.abs(x.delta || 0)));
    return section(words(key), table([{ name: "", get: (x) => words(x.name), word: true }, ...[...new Set(values)].filter((k) => k !== "name").map((k) => ({ name: k === "a" || k === "b" ? `${k}: ${r[k] && r[k].split ? r[k].split("/").pop() : k}` : words(k), get: (x) => x[k], show: (v, x) => show(x, v) })),
      rows[0].delta !== undefined ? { name: "change", get: (x) => x.delta, show: (v, x) => show(x, v) } : null,
      rows[0].change_pct !== undefined ? { name: "%", get: (x) => x.change_pct, show: (v) => (v === null ? "–" : digits(v, 3)) } : null,
      rows[0].delta !== undefined && unit[key] && key !== "links" ? { name: "", get: (x) => x.delta, show: (v) => (v ? bar(v / most, v > 0 ? "var(--bad)" : "var(--good)") : "") } : null].filter((c) => c), rows, { label: words(key) }));
  }).concat(section("All numbers", tree("result", r)));
}

function rowsOf(r) {
  return Object.values(r).find((v) => Array.isArray(v) && v.length && typeof v[0] === "object") || [];
}

/* A line for each of what tells rows apart, over size or, where there are more of these, over ranks. */
function viewCollective(r) {
  const rows = r.rows || [], distinct = (k) => new Set(rows.map((x) => x[k]));
  const along = distinct("n_ranks").size > distinct("bytes").size ? "n_ranks" : "bytes";
  const place = (x) => ["op", "cluster", "network", "n_ranks", "bytes"].map((k) => x[k]).join();
  const asked = new Set(rows.map(place)).size < rows.length ? ["algorithm"] : [];
  const others = ["op", "cluster", "network", "n_ranks", "bytes", ...asked].filter((k) => k !== along && distinct(k).size > 1);
  const shown = (k, v) => (k === "bytes" ? bytes(v) : k === "n_ranks" ? `${v} ranks` : v);
  const series = new Map();
  for (const x of rows) {
    const name = others.map((k) => shown(k, x[k])).join(", ") || x.op;
    for (const [key, of] of [["busbw_GBps", ""], ["measured_busbw_GBps", ", measured"]]) {
      if (!Number.isFinite(x[key])) continue;
      if (!series.has(name + of)) series.set(name + of, { name: name + of, dashed: of !== "", points: [] });
      series.get(name + of).points.push({ x: x[along], y: x[key], text: `${name}${of}\n${shown(along, x[along])}, ${x.algorithm || "as NCCL"}: ${digits(x[key])} GB/s` });
    }
  }
  return [section("Bus bandwidth", lines([...series.values()], { log: true, name: along === "bytes" ? "size" : "ranks", unit: 2, show: along === "bytes" ? bytes : count }, { name: "GB/s", show: count, low: 0 })),
    rows.length ? section("Table", plainTable(rows, "collectives")) : null, section("All numbers", tree("result", r))];
}

async function viewSchedule(r) {
  const sheet = await unpackText("sheet");
  if (!r.orders) return [section("Schedules", plainTable(rowsOf(r), "schedules")), sheet && section("On one scale", picture(sheet)), section("All numbers", tree("result", r))];
  const ranks = r.orders.map((o, i) => ({ rank: i, peak: r.peak_activations[i], idle: r.idle[i], share: r.idle[i] / r.makespan }));
  return [cards([["makespan", r.makespan, count, "makespan"], ["ideal", r.ideal, count, "ideal"], ["bubble", r.bubble_frac, percent, "bubble_frac"], ["bubble of the span", r.bubble_frac_span, percent]]),
    sheet && section("Schedule", picture(sheet)),
    section("Ranks", table([{ name: "rank", get: (x) => x.rank }, { name: "micro-batches held", get: (x) => x.peak, show: count }, { name: "idle", get: (x) => x.idle, show: count }, { name: "of makespan", get: (x) => x.share, show: percent }], ranks, { label: "ranks" })),
    section("Orders", table([{ name: "rank", get: (x) => x.i }, { name: "actions", get: (x) => x.text, long: true }], r.orders.map((o, i) => ({ i, text: o.join(" ") })), { label: "orders" })), section("All numbers", tree("result", r))];
}

function viewValidate(r) {
  const families = Object.keys(r.by_family || {}).sort((a, b) => b.length - a.length);
  const cases = (r.cases || []).map((x) => ({ ...x, family: families.find((f) => x.id.startsWith(f)) || "" }));
  const rows = cases.filter((x) => x.predicted_s && x.measured_s), names = [...new Set(rows.map((x) => x.family))];
  const points = rows.map((x) => ({ x: x.measured_s, y: x.predicted_s, color: colorOf(names.indexOf(x.family)),
    text: `${x.id}${x.source ? "\n" + x.source : ""}\nmeasured ${time(x.measured_s)}, predicted ${time(x.predicted_s)} (${digits(x.error_pct, 3)} %)` }));
  const scores = Object.entries(r.by_family || {}).map(([family, s]) => ({ family, ...s }));
  return [cards([["runs", r.summary.n, count, "n"], ["refused", r.summary.refused, count, "refused"], ["mean error", r.summary.mape_pct, (v) => digits(v, 3) + " %", "mape_pct"], ["bias", r.summary.bias_pct, (v) => digits(v, 3) + " %", "bias_pct"]]),
    rows.length ? section("Predicted over measured", scatter(points, { log: true, name: "measured", show: time }, { log: true, name: "predicted", show: time }, { height: 560, diagonal: true }), legend(names.map((f, i) => [f, colorOf(i)]))) : null,
    scores.length ? section("By family", plainTable(scores, "families")) : null, section("Runs", plainTable(cases, "runs")), section("All numbers", tree("result", r))];
}

const days = (s) => (Number.isFinite(s) ? digits(s / 86400, 4) + " d" : "–");
const longTime = (s) => (s >= 86400 ? days(s) : s >= 3600 ? digits(s / 3600, 3) + " h" : s >= 120 ? digits(s / 60, 3) + " min" : time(s));

/* What of the time counted, and where the rest went; causes; intervals and batches that were compared. */
function viewTrain(r) {
  const span = (s, show) => `${show(s.mean)} (${show(s.p5)} to ${show(s.p95)})`;
  const lost = Object.entries(r.lost_s).filter(([, s]) => s !== 0).map(([name, s]) => ({ name, s, share: s / r.time_s.mean }));
  const most = Math.max(...lost.map((x) => x.share), 0), causes = r.failures.causes, long = [...r.choices].sort((a, b) => a.interval_s - b.interval_s);
  const shares = (x, all) => bar(x / (all || 1), "var(--bad)");
  const kinds = [...new Set(long.map((c) => c.spares))];
  return [cards([["time", r.time_s.mean, days, "time"], ["goodput", r.goodput.mean, percent, "goodput"], ["stops", r.stops.mean, (v) => digits(v, 4), "stops"], ["steps alone", r.ideal_s, days, "ideal_s"],
      ["between failures", r.failures.mtbf_s, (v) => (v === null ? "never" : longTime(v)), "mtbf_s"], ["accelerator hours", r.gpu_hours, (v) => count(v < 100 ? v : Math.round(v)), "gpu_hours"], ["money", r.usd, (v) => (v === null ? "–" : "$" + count(Math.round(v))), "usd"], ["energy", r.mwh, (v) => (v === null ? "–" : digits(v, 4) + " MWh"), "mwh"]]),
    el("p", { class: "quiet" }, `Time ${span(r.time_s, days)}, goodput ${span(r.goodput, percent)}, stops ${span(r.stops, count)}: mean of ${r.seeds} runs, and what 5 % of them are below and above. Failures: ${r.failures.reliability}${r.failures.assumed ? " (assumed)" : ""}. ${r.failures.source}`),
    section("Phases", plainTable(r.phases, "phases")),
    lost.length ? section("Where time was lost", table([{ name: "by", get: (x) => x.name, word: true }, { name: "time", get: (x) => x.s, show: longTime }, { name: "of all", get: (x) => x.share, show: percent }, { name: "", get: (x) => x.share, show: (v) => shares(v, most) }], lost, { label: "lost" })) : null,
    causes.length ? section("Causes", table([{ name: "cause", get: (x) => x.name, word: true }, { name: "times", get: (x) => x.n, show: (v) => digits(v, 4) }, { name: "lost", get: (x) => x.lost_s, show: longTime }, { name: "of all", get: (x) => x.lost_s / r.time_s.mean, show: percent }], causes, { label: "causes" })) : null,
    long.length > 1 ? section("Intervals and spare nodes", lines(kinds.map((k) => ({ name: k === null ? "any spares" : `${k} spares`, points: long.filter((c) => c.spares === k).map((c) => ({ x: c.interval_s, y: 100 * c.goodput.mean, text: `every ${longTime(c.interval_s)}, ${k === null ? "any" : k} spares: ${percent(c.goodput.mean)}` })) })),
      { log: true, name: "between checkpoints", show: longTime }, { name: "goodput, %", show: count })) : null,
    r.batches.length ? section("Batches", plainTable(r.batches, "batches")) : null, section("Variation of steps", runSpread(r.step_spread)), section("Checkpoints", plainTable([r.checkpoint], "checkpoint")), section("All numbers", tree("result", r))];
}

/* What was allocated in the order in which the program did it, by kind, and the lines that held it at the peak. */
function viewCapture(r) {
  const curves = part("over-time"), kinds = curves.kinds.map((name, i) => [name, colorOf(i)]), of = new Map(kinds);
  const sums = [...r.peak.reduce((all, x) => all.set(x.kind, (all.get(x.kind) || 0) + x.bytes), new Map())];
  const parts = [...sums.map(([kind, n]) => [kind, n, of.get(kind)]), ["reserved, in no use", r.reserved_bytes - r.allocated_bytes, "var(--quiet)"],
    ["context and kernels", r.context_bytes, colorOf(7)], ["NCCL", r.nccl_bytes, colorOf(8)]].map(([name, n, color]) => [name, n, color, bytes(n)]);
  const most = Math.max(...r.peak.map((x) => x.bytes), 1), step = curves.changes / curves.columns.length;
  return [cards([["allocated", r.allocated_bytes, bytes, "allocated_bytes"], ["reserved", r.reserved_bytes, bytes, "reserved_bytes"], ["needed", r.needed_bytes, bytes, "needed_bytes"], ["of", r.total_bytes, bytes, "total_bytes"]]),
    el("p", { class: r.fits ? "good" : "bad" }, r.fits ? "It fits." : "It does not fit."), section("At the peak", stacked(parts, r.total_bytes)),
    curves.columns.length ? section("As the program allocated", areas(curves.columns.map((_, i) => i * step), kinds.map(([name, color], k) => [name, curves.columns.map((c) => c[k]), color]), curves.changes, 4 * r.allocated_bytes > r.total_bytes && r.total_bytes,
      { name: "allocations and frees", show: count }, { name: "allocated", show: bytes, unit: 2 ** 30 }), legend(kinds)) : null,
    section("Lines that held it", table([{ name: "line", get: (x) => x.line || "–", word: true }, { name: "operator", get: (x) => x.operator || "–", word: true }, { name: "phase", get: (x) => x.phase, word: true }, { name: "kind", get: (x) => x.kind, word: true },
      { name: "blocks", get: (x) => x.blocks, show: count }, { name: "bytes", get: (x) => x.bytes, show: bytes }, { name: "", get: (x) => x.bytes, show: (v, x) => bar(v / most, of.get(x.kind)) }], r.peak, { label: "lines", filter: true })), section("All numbers", tree("result", r))];
}

function viewOther(r) {
  return [...Object.entries(r).filter(([, v]) => Array.isArray(v) && v.length && typeof v[0] === "object").map(([k, v]) => section(words(k), plainTable(v, k))), section("All numbers", tree("result", r))];
}
