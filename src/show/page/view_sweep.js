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
    rows.length ? section("Configurations", table(columns, rows, { choose, filter: true, label: "configurations", most: 300 }), told) : null,
    rows.length > 1 ? section("Time and memory", scatter(points, { name: "step", show: time }, { name: "memory of the fullest rank", show: bytes, unit: 2 ** 30 }, { line: front.map((x) => ({ x: x.step_time_s, y: x.memory_bytes })) }), el("p", { class: "quiet" }, `All ${rows.length} that were simulated. Red: no other is both faster and smaller. Open: it holds at least so much; only the best were run to their peak. A click chooses, two are compared above.`)) : null,
    rows.length > 1 ? section("Parallel axes", parallel([...keys.slice(0, 9).map((k) => ({ name: words(k), get: (x) => x.config[k] ?? "–", show: String })), ...numeric.slice(0, 4)], rows)) : null,
    r.scaling && r.scaling.length > 1 ? section("Scaling", table(Object.keys(r.scaling[0]).map((k) => ({ name: words(k), get: (x) => x[k], show: showKey(k) })), r.scaling, { label: "scaling" })) : null,
    section("All numbers", tree("result", r))];
}
