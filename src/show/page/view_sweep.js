/* The page of `sweep`: configurations to sort, to filter, to compare. */

const SWEEP_MEASURES = [["step_time_s", "step", time], ["tokens_per_s", "tokens/s", count], ["mfu", "MFU", percent], ["memory_bytes", "memory", bytes], ["free_bytes", "free", bytes],
  ["exposed_s", "exposed", time], ["bubble_s", "bubble", time], ["usd_per_trillion_tokens", "USD per 10¹² tokens", count]];

/* Configurations that no other beats in both. */
function pareto(rows, a, b) {
  const order = rows.slice().sort((x, y) => x[a] - y[a] || x[b] - y[b]);
  let best = Infinity;
  return order.filter((row) => row[b] < best && ((best = row[b]), true));
}

function differences(x, y) {
  const changed = Object.keys(x.config).filter((k) => JSON.stringify(x.config[k]) !== JSON.stringify(y.config[k]));
  const rows = [...changed.map((k) => ({ name: words(k), a: String(x.config[k]), b: String(y.config[k]) })),
    ...SWEEP_MEASURES.filter(([k]) => typeof x[k] === "number" && typeof y[k] === "number").map(([k, name, show]) => ({ name, a: show(x[k]), b: show(y[k]), d: show(y[k] - x[k]) }))];
  return table([{ name: "", get: (r) => r.name, word: true }, { name: "first", get: (r) => r.a }, { name: "second", get: (r) => r.b }, { name: "second less first", get: (r) => r.d ?? "" }], rows, { label: "why one is slower" });
}

function viewSweep(r) {
  const rows = (r.simulated || r.best || []).concat();
  if (r.rule_of_thumb && !r.simulated) rows.push(r.rule_of_thumb);
  const keys = rows.length ? Object.keys(rows[0].config).filter((k) => new Set(rows.map((x) => JSON.stringify(x.config[k]))).size > 1) : [];
  const chosen = [], told = el("div", { "aria-live": "polite" }, el("p", { class: "quiet" }, "Choose two configurations to see how they differ."));
  const choose = (row, line) => {
    const at = chosen.findIndex((c) => c.row === row);
    if (at >= 0) chosen.splice(at, 1)[0].line.classList.remove("chosen");
    else { if (chosen.length === 2) chosen.shift().line.classList.remove("chosen"); chosen.push({ row, line }); line.classList.add("chosen"); }
    told.replaceChildren(chosen.length === 2 ? differences(chosen[0].row, chosen[1].row) : el("div", { class: "command" }, chosen.length ? chosen[0].row.knobs : "Choose two configurations to see how they differ."));
  };
  const columns = [...keys.map((k) => ({ name: words(k), get: (x) => x.config[k], show: (v) => (v === null ? "–" : String(v)) })),
    ...SWEEP_MEASURES.filter(([k]) => rows.some((x) => typeof x[k] === "number")).map(([k, name, show]) => ({ name, get: (x) => x[k], show })), { name: "why", get: (x) => x.why || "", word: true }];
  const front = pareto(rows, "step_time_s", "memory_bytes");
  const points = rows.map((x, i) => ({ x: x.step_time_s, y: x.memory_bytes, color: front.includes(x) ? paint("use-high") : colorOf(4), chosen: i === 0, text: `${x.knobs || ""}\n${time(x.step_time_s)}, ${bytes(x.memory_bytes)}` }));
  const numeric = SWEEP_MEASURES.filter(([k]) => rows.every((x) => typeof x[k] === "number")).map(([k, name, show]) => ({ name, get: (x) => x[k], show }));
  return [cards([...Object.entries(r.counts || {}).map(([k, v]) => [k, v, count]), rows.length ? ["best step", rows[0].step_time_s, time, "step_time_s"] : null]),
    r.command ? el("div", { class: "command" }, r.command) : null,
    rows.length ? section("Configurations", table(columns, rows, { choose, filter: true, label: "configurations" }), told) : null,
    rows.length > 1 ? section("Time and memory", scatter(points, { name: "step", show: time }, { name: "memory of the fullest rank", show: bytes, unit: 2 ** 30 }, { line: front.map((x) => ({ x: x.step_time_s, y: x.memory_bytes })) }), el("p", { class: "quiet" }, "Red: no other is both faster and smaller.")) : null,
    rows.length > 1 ? section("Parallel axes", parallel([...keys.slice(0, 9).map((k) => ({ name: words(k), get: (x) => x.config[k] ?? "–", show: String })), ...numeric.slice(0, 4)], rows)) : null,
    r.scaling && r.scaling.length > 1 ? section("Scaling", table(Object.keys(r.scaling[0]).map((k) => ({ name: words(k), get: (x) => x[k], show: showKey(k) })), r.scaling, { label: "scaling" })) : null,
    section("All numbers", tree("result", r))];
}
