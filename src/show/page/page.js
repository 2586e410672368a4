/* What all views share: parts of the file, elements, numbers for people, tables. Texts become text nodes only. */

const about = JSON.parse(document.getElementById("data-about").textContent);

function part(name) {
  const node = document.getElementById("data-" + name);
  return node ? JSON.parse(node.textContent) : null;
}

/* A packed part: gzip in base64. */
async function unpackText(name) {
  const node = document.getElementById("data-" + name);
  if (!node) return null;
  const bytes = Uint8Array.from(atob(node.textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}
async function unpack(name) {
  const text = await unpackText(name);
  return text === null ? null : JSON.parse(text);
}

/* Rows of a CSV by the names of its columns (RFC 4180). */
function rowsOfCsv(text) {
  const lines = [[""]];
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i], line = lines[lines.length - 1];
    if (c === '"' && quoted && text[i + 1] === '"') line[line.length - 1] += text[++i];
    else if (c === '"') quoted = !quoted;
    else if (c === "," && !quoted) line.push("");
    else if (c === "\n" && !quoted) lines.push([""]);
    else line[line.length - 1] += c;
  }
  const [names, ...rows] = lines.filter((line) => line.length > 1);
  return rows.map((cells) => Object.fromEntries(names.map((name, i) => [name, cells[i]])));
}

/* A drawing that came as SVG: a tree of its own, whose style sheet holds nothing else. */
function picture(text) {
  const drawn = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  const box = el("div", { class: "scroll picture", tabindex: 0, role: "img", "aria-label": drawn.firstElementChild.textContent }), inside = box.attachShadow({ mode: "open" });
  drawn.setAttribute("style", "max-width: 100%; height: auto");
  inside.append(document.importNode(drawn, true));
  for (const node of inside.querySelectorAll("[class] > title")) {
    const told = node.textContent;
    node.parentNode.addEventListener("pointermove", (event) => tip(event, told));
    node.parentNode.addEventListener("pointerleave", () => tip(null, null));
    node.remove();
  }
  return box;
}

/* --- colours --- */

/* Of the palette, which the style sheet has as variables; "": none of that name. */
const styles = getComputedStyle(document.documentElement), paints = new Map();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => paints.clear());
function paint(name) {
  if (!paints.has(name)) paints.set(name, styles.getPropertyValue("--" + name).trim());
  return paints.get(name);
}

/* --- elements --- */

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(3))
    if (child !== null && child !== undefined && child !== false)
      node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function section(title, ...children) {
  const shown = children.flat(3).filter((c) => c);
  if (!shown.length) return null;
  return el("section", { id: title.toLowerCase().replace(/[^a-z]+/g, "-") }, el("h2", null, title[0].toUpperCase() + title.slice(1)), shown);
}

const button = (text, onclick, title) => el("button", { class: "tool", type: "button", onclick, title }, text);

function legend(entries) {
  return el("div", { class: "legend" },
    entries.map(([name, color]) => el("span", null, el("i", { style: `background:${color}` }), name)));
}

/* --- what is under the pointer --- */

const tipBox = el("div", { id: "tip", hidden: true, role: "status" });
function tip(event, text) {
  tipBox.hidden = !text;
  if (!text) return;
  tipBox.textContent = text;
  const { offsetWidth: w, offsetHeight: h } = tipBox;
  tipBox.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - w - 8)) + "px";
  tipBox.style.top = Math.max(4, event.clientY + 18 + h > innerHeight ? event.clientY - h - 10 : event.clientY + 18) + "px";
}
const withTip = (node, text) => {
  node.addEventListener("pointermove", (event) => tip(event, text));
  node.addEventListener("pointerleave", () => tip(null, null));
  return node;
};

/* --- numbers for people --- */

/* As many digits that count; kept: also zeros at the end, so that numbers of a column end alike. */
function digits(x, n, kept) {
  if (x === 0) return "0";
  const places = Math.max(0, Math.min(12, (n || 4) - 1 - Math.floor(Math.log10(Math.abs(x)))));
  return x.toLocaleString("en-US", { maximumFractionDigits: places, minimumFractionDigits: kept ? places : 0 });
}
function timeOf(s, n, kept) {
  if (s === null || s === undefined) return "–";
  const a = Math.abs(s);
  if (a === 0) return "0 s";
  if (a >= 1) return digits(s, n, kept) + " s";
  if (a >= 1e-3) return digits(s * 1e3, n, kept) + " ms";
  if (a >= 1e-6) return digits(s * 1e6, n, kept) + " µs";
  return digits(s * 1e9) + " ns";
}
const time = (s) => timeOf(s, 4, true);
/* A place on an axis. */
const clock = (s) => timeOf(s, 6, false);
function bytesOf(b, kept) {
  if (b === null || b === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; Math.abs(b) >= 1024 && i < 4; i++) b /= 1024;
  return digits(b, 4, kept && i > 0) + " " + units[i];
}
const bytes = (b) => bytesOf(b, true);
/* A place on an axis. */
const size = (b) => bytesOf(b, false);
/* With one place, below 1 % with two; what is there and would be 0 is said to be less. */
function percent(x) {
  if (x === null || x === undefined) return "–";
  const p = 100 * x, a = Math.abs(p), places = a < 1 && a > 0 ? 2 : 1;
  if (a > 0 && a < 0.005) return (p < 0 ? "> −0.01" : "< 0.01") + " %";
  return p.toLocaleString("en-US", { maximumFractionDigits: places, minimumFractionDigits: a > 0 ? places : 0 }) + " %";
}
const count = (x) => (x === null || x === undefined ? "–" : digits(x, 6));
const words = (key) => key.replace(/_per_s(?=_|$)/, "/s").replace(/_s$|_bytes$|_ps$/, "").replace(/_pct$/, " %").replace(/_/g, " ");

function cards(entries) {
  return el("div", { class: "cards" }, entries.filter((e) => e && e[1] !== null && e[1] !== undefined)
    .map(([name, value, format, key, kind]) =>
      el("div", { class: "card", "data-key": key || name, "data-value": value }, el("span", { class: "quiet" }, name),
        el("b", { class: kind }, (format || String)(value)))));
}

/* --- tables --- */

/* columns: { name, get (row), show (value, row), word, title }. A click on a head sorts, again the other way. */
function table(columns, rows, options) {
  const { choose, isChosen, filter, label, most = Infinity } = options || {};
  const body = el("tbody"), more = el("p", { class: "quiet" });
  const shown = rows.slice();
  let sorted = -1, down = false, wanted = "";
  const text = (column, row) => {
    const value = column.get(row);
    return column.show ? column.show(value, row) : value === null || value === undefined ? "–" : String(value);
  };
  function draw() {
    const found = shown.filter((row) => !wanted || columns.some((c) => String(c.get(row)).toLowerCase().includes(wanted)));
    more.textContent = found.length > most ? `${most} of ${found.length} rows: filter or sort for the others` : "";
    body.replaceChildren(...found.slice(0, most).map((row) => {
        const line = el("tr", choose && { class: isChosen && isChosen(row) ? "chosen" : null, tabindex: 0, onclick: () => choose(row, line),
          onkeydown: (e) => (e.key === "Enter" || e.key === " ") && (e.preventDefault(), choose(row, line)) },
          columns.map((c) => el("td", { class: c.long ? "long" : c.word ? "word" : null, title: c.title && c.title(row) }, text(c, row))));
        return line;
      }));
  }
  const heads = columns.map((column, i) => el("th", { class: column.word || column.long ? "word" : null, scope: "col" },
    el("button", { type: "button", onclick: () => sort(i) }, column.name)));
  function sort(i) {
    down = sorted === i ? !down : false;
    sorted = i;
    const key = (row) => columns[i].get(row);
    shown.sort((x, y) => {
      const a = key(x), b = key(y);
      const order = a === b ? 0 : a === null || a === undefined ? 1 : b === null || b === undefined ? -1 : a < b ? -1 : 1;
      return down ? -order : order;
    });
    heads.forEach((h, k) => (k === i ? h.setAttribute("aria-sort", down ? "descending" : "ascending") : h.removeAttribute("aria-sort")));
    draw();
  }
  draw();
  const box = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label || "table" },
    el("table", null, el("thead", null, el("tr", null, heads)), body));
  if (!filter) return box;
  const input = el("input", { type: "search", placeholder: "filter rows", "aria-label": "filter rows",
    oninput: () => { wanted = input.value.toLowerCase(); draw(); } });
  return [el("div", { class: "tools" }, input), box, more];
}

/* Any JSON, to be opened level by level. */
function tree(name, value) {
  if (value === null || typeof value !== "object") return el("div", null, el("span", { class: "quiet" }, name + ": "), el("code", null, String(value)));
  const node = el("details", null, el("summary", null, name));
  node.addEventListener("toggle", () => node.open && node.children.length === 1
    && node.append(...Object.entries(value).map(([k, v]) => tree(k, v))), { once: false });
  return node;
}

/* What the numbers of a result follow from, whence each is, and what to type for another one. */
function assumptions(r) {
  if (!r || !r.assumptions || !r.assumptions.length) return null;
  const column = (name) => ({ name, get: (x) => x[name], word: true });
  return table([{ name: "what", get: (x) => words(x.key), word: true }, column("value"), column("why"), column("instead")], r.assumptions, { label: "assumptions" });
}
