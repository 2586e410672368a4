/* The page of `run`: what the step takes and why. */

const partColor = (name, i) => paint(name.replace("exposed_", "")) || colorOf(i);
const memoryColor = (name) => paint(name === "optimizer" ? "optimizer-states" : name.replace("_", "-")) || paint("other");

function runCards(r) {
  const m = r.memory || {};
  const interval = r.interval && r.interval.low_s !== null && r.interval.low_s !== undefined;
  return cards([["step", r.step_time_s, time, "step_time_s"],
    interval ? [`${r.interval.level_pct} % of measured steps`, r.interval.low_s, () => `${time(r.interval.low_s)} to ${time(r.interval.high_s)}`, "interval"] : null,
    r.measured && r.measured.step_time_s ? ["measured", r.measured.step_time_s, time, "measured"] : null,
    ["tokens/s", r.tokens_per_s, count], ["tokens/s each", r.tokens_per_s_per_gpu, count], ["MFU", r.mfu, percent, "mfu"], ["HFU", r.hfu, percent, "hfu"],
    ["pipeline bubble", r.bubble_frac, percent, "bubble_frac"],
    ["memory", m.needed_bytes, (b) => `${bytes(b)} of ${bytes(m.capacity_bytes)}`, "needed_bytes", m.fits === false ? "bad" : null], verdict(m)]);
}

/* Whether memory is enough, in the words of the command; yellow is no colour to read: what lacks headroom has none. */
const verdict = (m) => ["does it fit", m.verdict, String, "verdict", m.fits === false ? "bad" : m.headroom && m.headroom.left ? "good" : null];

function runBreakdown(r) {
  const rows = Object.entries(r.breakdown_s || {}).filter(([, s]) => s > 0).map(([name, s], i) => ({ name, s, color: partColor(name, i) }));
  if (!rows.length) return null;
  const parts = Object.entries(r.bubble_parts_s || {}).filter(([, s]) => s > 0);
  return [stacked(rows.map((x) => [words(x.name), x.s, x.color, `${time(x.s)}, ${percent(x.s / r.step_time_s)}`]), r.step_time_s),
    table([{ name: "where the time goes", get: (x) => words(x.name), word: true }, { name: "time", get: (x) => x.s, show: time },
      { name: "of the step", get: (x) => x.s / r.step_time_s, show: percent }, { name: "", get: (x) => x.s, show: (s, x) => bar(s / r.step_time_s, x.color) }], rows, { label: "breakdown" }),
    parts.length ? el("p", { class: "quiet" }, "Bubble: ", parts.map(([k, s]) => `${words(k)} ${time(s)}`).join(", ")) : null];
}

function memoryOver(curves) {
  if (!curves || !curves.ranks.length) return null;
  const holder = el("div");
  const draw = (i) => {
    const c = curves.ranks[i], layers = Object.entries(c.alive).filter(([, v]) => v.some((b) => b > 0)).map(([k, v]) => [words(k), v, memoryColor(k)]);
    holder.replaceChildren(areas(c.at, layers, curves.window, curves.capacity_bytes, { show: (v) => time(v * 1e-9), name: "time from the start of the step" }, { show: bytes, unit: 2 ** 30, name: "held by the rank" }),
      legend(layers.map(([k, , color]) => [k, color])));
  };
  draw(0);
  const select = el("select", { "aria-label": "rank", onchange: () => draw(Number(select.value)) },
    curves.ranks.map((c, i) => el("option", { value: i }, `rank ${c.rank}${i === 0 ? ", the fullest" : ""}`)));
  return [el("div", { class: "tools" }, "What ", select, " holds; the dashed line is what the device has"), holder];
}

function runLinks(r) {
  if (!r.link_groups || !r.link_groups.length) return null;
  return table([{ name: "links", get: (x) => x.name, word: true }, { name: "number", get: (x) => x.n, show: count }, { name: "busiest", get: (x) => x.max_utilisation, show: percent },
    { name: "mean", get: (x) => x.mean_utilisation, show: percent }, { name: "", get: (x) => x.max_utilisation, show: (u) => bar(u) }, { name: "bytes a step", get: (x) => x.bytes, show: bytes }], r.link_groups, { label: "links" });
}

function runCritical(path) {
  if (!path) return null;
  const kinds = Object.entries(path.by_kind_ps).filter(([, ps]) => ps > 0).map(([k, ps], i) => [words(k), ps, colorOf(i), `${time(ps * 1e-12)}, ${percent(ps / path.step_ps)}`]);
  const rows = path.ops || [], keys = rows.length ? Object.keys(rows[0]) : [];
  return [stacked(kinds, path.step_ps), rows.length ? table(keys.map((k) => ({ name: words(k), get: (x) => x[k], word: typeof rows[0][k] === "string", show: showKey(k) })), rows, { label: "ops of the critical path", filter: true }) : null];
}

/* How a member of that name is shown, by its unit. */
function showKey(key) {
  if (/_ps$/.test(key)) return (v) => (v === null ? "–" : time(v * 1e-12));
  if (/_s$/.test(key) && !/_per_s$/.test(key)) return time;
  if (/bytes$/.test(key)) return bytes;
  if (/frac|^mfu|^hfu|utilisation$/.test(key)) return percent;
  return (v) => (typeof v === "number" ? count(v) : v === null || v === undefined ? "–" : typeof v === "object" ? JSON.stringify(v) : String(v));
}

const more = (v) => (v === null ? "–" : (v >= 0 ? "+" : "−") + digits(100 * Math.abs(v), 3) + " %");

function runSensitivity(rows) {
  if (!rows || !rows.length) return null;
  return table([{ name: "what is a percent better", get: (x) => words(x.parameter), word: true }, { name: "step", get: (x) => x.elasticity, show: (v) => digits(v, 3) + " %" },
    { name: "time", get: (x) => x.seconds_per_percent, show: time }, { name: "", get: (x) => Math.abs(x.elasticity), show: (v) => bar(v) }], rows, { label: "sensitivity" });
}

/* How steps differ: what the job has, and jobs of fewer replicas. */
function runSpread(s) {
  if (!s) return null;
  const part = (v) => digits(100 * v, 3) + " %";
  return [cards([["mean", s.mean_s, time, "mean_s"], ["median", s.median_s, time], ["5 % to 95 %", s.p5_s, () => `${time(s.p5_s)} to ${time(s.p95_s)}`], ["if all were alike", s.alike_s, time]]),
    table([{ name: "ranks", get: (x) => x.ranks, show: count }, { name: "replicas", get: (x) => x.replicas, show: count }, { name: "slowest", get: (x) => x.slowest, show: more }, { name: "noise", get: (x) => x.noise, show: more },
      { name: "5 %", get: (x) => x.p5 - 1, show: more }, { name: "95 %", get: (x) => x.p95 - 1, show: more }, { name: "by speed", get: (x) => x.deviation_by_speed, show: part },
      { name: "by noise", get: (x) => x.deviation_by_noise, show: part }, { name: "by day", get: (x) => x.deviation_by_day, show: part }], s.scales, { label: "variation of steps" }),
    lines([{ name: "steps that are shorter", points: s.quantiles.map((q) => ({ x: q.step_s, y: 100 * q.share, text: `${part(q.share)} are shorter than ${time(q.step_s)}` })) }],
      { name: "time of a step", show: clock }, { name: "share, %", show: count }, { height: 300 }),
    s.scales.length > 1 ? lines([["slowest", "slowest"], ["noise", "noise"]].map(([name, key]) => ({ name, points: s.scales.map((x) => ({ x: x.ranks, y: 100 * x[key], text: `${count(x.ranks)} ranks: ${more(x[key])}` })) })),
      { log: true, name: "ranks", show: count }, { name: "a step is longer, %", show: (v) => digits(v, 3) }, { height: 300 }) : null,
    el("p", { class: "quiet" }, `Jitter ${s.jitter}. What the slowest rank costs is in the predicted step; noise is not. The last three columns are standard deviations.`)];
}

/* Which part hurts most: as --faults prints it. */
function runFaults(f) {
  if (!f || f.rows.length === 0)
    return null;
  const left = f.share === 0 ? "failed" : `at ${percent(f.share)} of what it can do`;
  return [el("p", { class: "quiet" }, `One ${f.each} at a time ${left}; parts that are alike are simulated once.`),
    table([{ name: f.each, get: (x) => x.first, word: true }, { name: "alike", get: (x) => x.n_alike }, { name: "all of them", get: (x) => x.pattern, word: true },
      { name: "step", get: (x) => x.step_time_s, show: (v) => (v === null ? "none" : time(v)) }, { name: "slower", get: (x) => x.slower, show: more },
      { name: "cut off", get: (x) => x.cut_off, long: true }], f.rows, { most: 50, label: "faults" })];
}

/* What the seed of hashed routing does: as --ecmp-seeds prints it, with each seed. */
function runSeeds(e) {
  if (!e)
    return null;
  return [el("p", { class: "quiet" }, `Ideal spreading: ${time(e.ideal.step_time_s)}. Crowding: bytes of the busiest link between switches over the mean.`),
    table([{ name: "seed", get: (x) => x.seed }, { name: "step", get: (x) => x.step_time_s, show: time },
      { name: "slower", get: (x) => x.step_time_s / e.ideal.step_time_s - 1, show: more }, { name: "crowding", get: (x) => x.crowding, show: (v) => v.toFixed(2) },
      { name: "busiest", get: (x) => x.busiest, word: true }], e.seeds, { most: 50, label: "seeds" })];
}

/* Changes that gain, or would without the limit of memory. */
function runWhatIf(w) {
  if (!w) return null;
  const rows = w.changes.filter((x) => !x.refused && x.gain >= 5e-4);
  return [table([{ name: "change", get: (x) => x.change, word: true }, { name: "tokens/s", get: (x) => x.gain, show: (v) => "+" + digits(100 * v, 3) + " %" }, { name: "step", get: (x) => x.step_time_s, show: time },
    { name: "memory", get: (x) => x.needed_bytes, show: bytes }, { name: "fits", get: (x) => x.fits, show: (v) => (v ? "yes" : "no") }, { name: "takes", get: (x) => x.cost || "", word: true }], rows, { label: "what if", filter: rows.length > 12 }),
    el("p", { class: "quiet" }, `Each is simulated alone; gains do not add up. ${w.changes.filter((x) => !x.refused).length - rows.length} gain nothing, ${w.changes.filter((x) => x.refused).length} are not possible.`)];
}

function provenance(r) {
  const p = r.provenance;
  if (!p) return null;
  return [p.options ? el("div", { class: "command" }, p.options) : null,
    table([{ name: "what", get: (x) => words(x[0]), word: true }, { name: "which", get: (x) => x[1].name || x[1], word: true, show: (v) => (typeof v === "object" ? "" : String(v)) },
      { name: "source", get: (x) => (x[1] && x[1].source) || "", long: true }], Object.entries(p).filter(([k, v]) => k !== "options" && v !== null && typeof v !== "boolean" && k !== "kernel_time_frac"), { label: "provenance" }),
    p.kernel_time_frac ? el("p", { class: "quiet" }, "Kernel time by what it rests on: ", Object.entries(p.kernel_time_frac).map(([k, v]) => `${words(k)} ${percent(v)}`).join(", ")) : null];
}

async function viewRun(r) {
  const [t, curves, map] = [await unpack("timeline"), await unpack("memory"), await unpackText("links")];
  const interval = r.interval && r.interval.label;
  return [runCards(r), interval ? el("p", { class: "quiet" }, `The interval is ${interval}.`) : null,
    section("Breakdown", runBreakdown(r)), t && section("Timeline", timelineView(t)), section("Memory", memoryOver(curves)),
    section("Links", map && picture(map), runLinks(r)), section("Critical path", runCritical(r.critical_path)), section("Sensitivity", runSensitivity(r.sensitivity)), section("Faults", runFaults(r.faults)), section("Hashed routing", runSeeds(r.ecmp)), section("What if", runWhatIf(r.what_if)), section("Variation of steps", runSpread(r.step_spread)),
    section("What it rests on", provenance(r)), section("All numbers", tree("result", r))];
}

async function viewMemory(r) {
  const curves = await unpack("memory"), categories = Object.keys((r.ranks[0] || {}).at_peak || {});
  return [cards([["needed", Math.max(...r.ranks.map((x) => x.needed_bytes)), bytes, "needed_bytes"], ["of", r.capacity_bytes, bytes, "capacity_bytes"],
    verdict(r), ["step", r.step_time_s, time, "step_time_s"]]),
    section("Over the step", memoryOver(curves)),
    section("Ranks at their peak", table([{ name: "rank", get: (x) => x.rank }, { name: "stage", get: (x) => x.stage }, { name: "such ranks", get: (x) => x.count }, { name: "needed", get: (x) => x.needed_bytes, show: bytes },
      ...categories.map((c) => ({ name: words(c), get: (x) => x.at_peak[c], show: bytes })),
      { name: "when", get: (x) => x.peak && x.peak.time_s, show: time }, { name: "in", get: (x) => (x.peak ? `${x.peak.op}, ${x.peak.segment}` : ""), word: true }], r.ranks, { label: "ranks" })),
    r.advice && section("What would make it fit", tree("advice", r.advice)), section("All numbers", tree("result", r))];
}
