/* What fills a page, by the command that made it, from `run` on. */

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
    holder.replaceChildren(areas(c.at, layers, curves.window, curves.capacity_bytes, { show: (v) => time(v * 1e-9), name: "time from the start of the step" }, { show: size, unit: 2 ** 30, name: "held by the rank" }),
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

/* --- what if --- */

/* The command of the job itself, to which a change is appended. */
const jobCommand = () => about.command.replace(/^lockstep whatif/, "lockstep run").replace(/ (--(report|top|threads|format)(=| )|-j ?)('[^']*'|\S+)| --(what-if|all|software-each|csv|json)(?= |$)/g, "");

/* One of those that are shown: its step by parts, next to the longest, its numbers, its command. */
function variant(x, longest) {
  const values = [x.step_time_s - x.exposed_s - x.bubble_s, x.exposed_s, x.bubble_s, longest - x.step_time_s];
  return el("div", { class: "variant", "data-change": x.change }, el("h3", null, x.change || "as it is"),
    stacked(values.map((s, i) => [STEP_PARTS[i][0], s, paint(STEP_PARTS[i][1]), time(s)]), longest)[0],
    cards([["step", x.step_time_s, time, "step_time_s"], ["exposed", x.exposed_s, time, "exposed_s"], ["bubble", x.bubble_s, time, "bubble_s"],
      ["memory", x.needed_bytes, (b) => `${bytes(b)} of ${bytes(x.capacity_bytes)}`, "needed_bytes", x.fits ? null : "bad"], ["tokens/s", x.tokens_per_s, count, "tokens_per_s"], x.cost ? ["takes", x.cost] : null]),
    x.change ? el("div", { class: "command" }, `${jobCommand()} ${x.change}`) : null);
}
const STEP_PARTS = [["computing and all else", "forward"], ["exposed communication", "dp"], ["bubble", "bubble"], ["shorter than the longest shown", "idle"]];

/* Changes, each simulated alone; those that are chosen are shown below the job as it is. */
function whatIf(w) {
  const rows = w.changes.filter((x) => !x.refused), gains = rows.filter((x) => x.gain >= 5e-4), best = gains.find((x) => x.fits);
  const chosen = best ? [best] : [], shown = el("div", { "aria-live": "polite" });
  const draw = () => {
    const all = [{ ...w.now, change: "" }, ...chosen], longest = Math.max(...all.map((x) => x.step_time_s));
    shown.replaceChildren(legend(STEP_PARTS.map(([name, color]) => [name, paint(color)])), ...all.map((x) => variant(x, longest)));
  };
  const choose = (row, line) => {
    const at = chosen.indexOf(row);
    if (at >= 0) chosen.splice(at, 1);
    else chosen.push(row);
    line.classList.toggle("chosen", at < 0);
    draw();
  };
  draw();
  return [el("p", { class: "quiet" }, `Choose changes to see them next to the job. Each is simulated alone${w.mixes_programs ? ", with the program's own defaults" : "; gains do not add up"}. ${rows.length - gains.length} gain nothing, ${w.changes.length - rows.length} are not possible.`),
    table([{ name: "change", get: (x) => x.change, word: true }, { name: "tokens/s", get: (x) => x.gain, show: (v) => (v > 0 ? "+" : "") + percent(v) }, { name: "step", get: (x) => x.step_time_s, show: time }, { name: "exposed", get: (x) => x.exposed_s, show: time }, { name: "bubble", get: (x) => x.bubble_s, show: time },
      { name: "memory", get: (x) => x.needed_bytes, show: bytes }, { name: "fits", get: (x) => x.fits, show: (v) => (v ? "yes" : "no") }, { name: "takes", get: (x) => x.cost || "", word: true }], rows, { choose, isChosen: (x) => chosen.includes(x), label: "what if", filter: rows.length > 12 }), shown];
}

function viewWhatIf(r) {
  const refused = r.changes.filter((x) => x.refused);
  return [section("What if", whatIf(r), r.left_out && el("p", { class: "quiet" }, r.left_out)),
    refused.length ? section("Not possible", table([{ name: "change", get: (x) => x.change, word: true }, { name: "why", get: (x) => x.refused, long: true }], refused, { label: "not possible" })) : null,
    section("All numbers", tree("result", r))];
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
  return [runCards(r), interval ? el("p", { class: "quiet" }, `Where a measured step would lie: ${interval}.`) : null,
    section("Breakdown", runBreakdown(r)), t && section("Timeline", timelineView(t)), section("Memory", memoryOver(curves)),
    section("Links", map && picture(map), runLinks(r)), section("Critical path", runCritical(r.critical_path)), section("Sensitivity", runSensitivity(r.sensitivity)), section("Faults", runFaults(r.faults)), section("Hashed routing", runSeeds(r.ecmp)), section("What if", r.what_if && whatIf(r.what_if)), section("Variation of steps", runSpread(r.step_spread)),
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
/* The page of `sweep`: configurations to sort, to filter, to compare. */

const SWEEP_MEASURES = [["step_time_s", "step", time], ["tokens_per_s", "tokens/s", count], ["mfu", "MFU", percent], ["memory_bytes", "memory", bytes], ["free_bytes", "free", bytes],
  ["exposed_s", "exposed", time], ["bubble_s", "bubble", time], ["usd_per_trillion_tokens", "USD per 10¹² tokens", count]];

/* Configurations that no other beats in both, of those whose peak is known. */
function pareto(rows, a, b) {
  const order = rows.filter((x) => !x.is_bound).sort((x, y) => x[a] - y[a] || x[b] - y[b]);
  let best = Infinity;
  return order.filter((row) => row[b] < best && ((best = row[b]), true));
}

/* A knob as --json has it. */
function valueOf(text) {
  if (text === "") return null;
  if (text === "true" || text === "false") return text === "true";
  return /^-?[0-9.]+$/.test(text) ? Number(text) : text;
}

/* All that were simulated, the best first; of the others the list tells time, memory and knobs. */
function simulated(list, best) {
  const known = new Set(best.map((x) => x.knobs));
  const others = (list || []).filter((x) => !known.has(x.knobs)).map(({ step_time_ps, memory_bytes, memory_at_least_bytes, memory_is, knobs, ...config }) => ({
    knobs, step_time_s: step_time_ps * 1e-12, memory_bytes: Number(memory_bytes || memory_at_least_bytes), is_bound: memory_is !== "peak",
    tokens_per_s: (config.global_batch * config.seq) / (step_time_ps * 1e-12), config: Object.fromEntries(Object.entries(config).map(([k, v]) => [k, valueOf(v)])) }));
  return [...best, ...others.sort((x, y) => y.tokens_per_s - x.tokens_per_s)];
}

/* start: the command up to the knobs; "": not known. */
function differences(x, y, start) {
  const changed = Object.keys(x.config).filter((k) => k in y.config && JSON.stringify(x.config[k]) !== JSON.stringify(y.config[k]));
  const rows = [...changed.map((k) => ({ name: words(k), a: String(x.config[k]), b: String(y.config[k]) })),
    ...SWEEP_MEASURES.filter(([k]) => typeof x[k] === "number" && typeof y[k] === "number").map(([k, name, show]) => ({ name, a: show(x[k]), b: show(y[k]), d: show(y[k] - x[k]) }))];
  const parts = [el("p", { class: "quiet" }, "What each step is made of, part by part:"),
    el("div", { class: "command" }, [["first", x], ["second", y]].map(([name, row]) => el("div", null, `${start}${row.knobs} --json > ${name}.json`)), el("div", null, "lockstep compare first.json second.json"))];
  return [table([{ name: "", get: (r) => r.name, word: true }, { name: "first", get: (r) => r.a }, { name: "second", get: (r) => r.b }, { name: "second less first", get: (r) => r.d ?? "" }], rows, { label: "why one is slower" }), start && x.knobs && y.knobs ? parts : null];
}

async function viewSweep(r) {
  const text = await unpackText("simulated"), best = (r.best || []).concat();
  if (r.rule_of_thumb && !best.some((x) => x.knobs === r.rule_of_thumb.knobs)) best.push(r.rule_of_thumb);
  const rows = simulated(text && rowsOfCsv(text), best);
  const keys = rows.length ? Object.keys(rows[0].config).filter((k) => new Set(rows.map((x) => JSON.stringify(x.config[k]))).size > 1) : [];
  const start = r.command ? r.command.slice(0, Math.max(0, r.command.indexOf(" --gpus ") + 1)) : "";
  const chosen = [], told = el("div", { "aria-live": "polite" }, el("p", { class: "quiet" }, "Choose two configurations to see how they differ."));
  const choose = (row, line) => {
    const at = chosen.findIndex((c) => c.row === row);
    if (at >= 0) chosen.splice(at, 1)[0].line.classList.remove("chosen");
    else { if (chosen.length === 2) chosen.shift().line.classList.remove("chosen"); chosen.push({ row, line }); line.classList.add("chosen"); }
    told.replaceChildren(...[chosen.length === 2 ? differences(chosen[0].row, chosen[1].row, start) : el("div", { class: "command" }, chosen.length ? chosen[0].row.command || chosen[0].row.knobs : "Choose two configurations to see how they differ.")].flat(2).filter((x) => x));
  };
  const columns = [...keys.map((k) => ({ name: words(k), get: (x) => x.config[k], show: (v) => (v === null ? "–" : String(v)) })),
    ...SWEEP_MEASURES.filter(([k]) => rows.some((x) => typeof x[k] === "number")).map(([k, name, show]) => ({ name, get: (x) => x[k], show })), { name: "why", get: (x) => x.why || "", word: true }];
  const front = pareto(rows, "step_time_s", "memory_bytes");
  const points = rows.map((x, i) => ({ x: x.step_time_s, y: x.memory_bytes, color: front.includes(x) ? paint("use-5") : colorOf(4), chosen: i === 0, open: x.is_bound,
    text: `${x.knobs || ""}\n${time(x.step_time_s)}, ${x.is_bound ? "at least " : ""}${bytes(x.memory_bytes)}`, choose: (event) => choose(x, event.currentTarget) }));
  const numeric = SWEEP_MEASURES.filter(([k]) => rows.every((x) => typeof x[k] === "number")).map(([k, name, show]) => ({ name, get: (x) => x[k], show }));
  return [cards([...Object.entries(r.counts || {}).map(([k, v]) => [k, v, count]), rows.length ? ["best step", rows[0].step_time_s, time, "step_time_s"] : null]),
    r.command ? el("div", { class: "command" }, r.command) : null,
    rows.length ? section("Configurations", table(columns, rows, { choose, isChosen: (x) => chosen.some((c) => c.row === x), filter: true, label: "configurations", most: 300 }), told) : null,
    rows.length > 1 ? section("Time and memory", scatter(points, { name: "step", show: time }, { name: "memory of the fullest rank", show: size, unit: 2 ** 30 }, { line: front.map((x) => ({ x: x.step_time_s, y: x.memory_bytes })) }), el("p", { class: "quiet" }, `All ${rows.length} that were simulated. Red: no other is both faster and smaller. Open: it holds at least so much; only the best were run to their peak. A click chooses, two are compared above.`)) : null,
    rows.length > 1 ? section("Parallel axes", parallel([...keys.slice(0, 9).map((k) => ({ name: words(k), get: (x) => x.config[k] ?? "–", show: String })), ...numeric.slice(0, 4)], rows)) : null,
    r.scaling && r.scaling.length > 1 ? section("Scaling", table(Object.keys(r.scaling[0]).map((k) => ({ name: words(k), get: (x) => x[k], show: showKey(k) })), r.scaling, { label: "scaling" })) : null,
    section("All numbers", tree("result", r))];
}
/* The pages of compare, collective, schedule, validate, train and capture. */

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
    el("p", { class: "quiet" }, `Time ${span(r.time_s, days)}, goodput ${span(r.goodput, percent)}, stops ${span(r.stops, count)}: mean of ${r.seeds} runs, and what 5 % of them are below and above. Failures: ${r.failures.reliability}${r.failures.assumed ? " (by default)" : ""}. ${r.failures.source}`),
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
      { name: "allocations and frees", show: count }, { name: "allocated", show: size, unit: 2 ** 30 }), legend(kinds)) : null,
    section("Lines that held it", table([{ name: "line", get: (x) => x.line || "–", word: true }, { name: "operator", get: (x) => x.operator || "–", word: true }, { name: "phase", get: (x) => x.phase, word: true }, { name: "kind", get: (x) => x.kind, word: true },
      { name: "blocks", get: (x) => x.blocks, show: count }, { name: "bytes", get: (x) => x.bytes, show: bytes }, { name: "", get: (x) => x.bytes, show: (v, x) => bar(v / most, of.get(x.kind)) }], r.peak, { label: "lines", filter: true })), section("All numbers", tree("result", r))];
}

function viewOther(r) {
  return [...Object.entries(r).filter(([, v]) => Array.isArray(v) && v.length && typeof v[0] === "object").map(([k, v]) => section(words(k), plainTable(v, k))), section("All numbers", tree("result", r))];
}
/* Fills the page. */

const VIEWS = { run: viewRun, memory: viewMemory, sweep: viewSweep, compare: viewCompare, collective: viewCollective, schedule: viewSchedule, validate: viewValidate, train: viewTrain, capture: viewCapture, whatif: viewWhatIf };

(async () => {
  const page = document.getElementById("page"), result = part("result");
  page.replaceChildren(el("h1", null, about.title || `lockstep ${about.kind}`), about.subtitle ? el("p", { class: "quiet lines" }, about.subtitle) : "",
    el("div", { class: "command" }, about.command), el("nav"));
  document.body.append(tipBox);
  try {
    const shown = [(await (VIEWS[about.kind] || viewOther)(result)), section("Assumptions", assumptions(result))].flat(3).filter((x) => x);
    page.append(...shown);
    page.querySelector("nav").append(...shown.filter((s) => s.tagName === "SECTION").map((s) => el("a", { href: "#" + s.id }, s.firstChild.textContent)));
    document.documentElement.dataset.ready = "1";
  } catch (error) {
    page.append(el("p", { class: "bad" }, `This browser cannot show all of it: ${error.message}`));
    console.error(error);
  }
  if (about.notes.length) page.querySelector("nav").after(el("ul", { class: "notes" }, about.notes.map((n) => el("li", null, n))));
  page.append(el("p", { class: "quiet" }, `Written by lockstep ${about.version}. All numbers are in this file, which loads nothing.`));
})();
