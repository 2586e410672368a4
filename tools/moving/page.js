'use strict';

const byId = (id) => document.getElementById(id);
const element = (tag, text, parent) => { const e = document.createElement(tag); e.textContent = text; parent.append(e); return e; };
/* Three digits, of large numbers all before the point. */
const digits = (x) => Math.abs(x) >= 1000 ? Math.round(x).toLocaleString('en') : Number(x.toPrecision(3)).toString();

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return JSON.parse(await new Response(stream).text());
}
