
const drawn = (tag, attributes, parent, text) => {
  const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  if (text !== undefined) e.textContent = text;
  parent.append(e);
  return e;
};

/* The place of the sliders: an index of each. */
function pointAt(data, place) {
  return data.points[JSON.stringify(place.map((i, k) => data.sliders[k][1][i]))];
}

/* A bar for each value of the first slider; the others are as they stand. */
function drawBars(data, place) {
  const width = 900, left = 150, row = 34, values = data.sliders[0][1];
  const points = values.map((_, i) => pointAt(data, [i, ...place.slice(1)]));
  const sum = (p) => p && p.parts ? p.parts.reduce((a, b) => a + b, 0) : 0;
  const most = Math.max(1e-12, ...points.map((p) => Math.max(sum(p), (p && p.limit) || 0)));
  const across = (x) => x / most * (width - left - 120);
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', `0 0 ${width} ${row * values.length + 30}`);
  points.forEach((p, i) => {
    const y = 20 + row * i;
    let x = left;
    drawn('text', { x: left - 10, y: y + 16, 'text-anchor': 'end' }, svg, `${data.sliders[0][0]} ${values[i]}`);
    if (!p || !p.parts)
      drawn('text', { x: left, y: y + 16, class: 'tick' }, svg, p ? 'refused' : 'not there');
    else {
      p.parts.forEach((part, k) => {
        drawn('rect', { x, y, width: across(part), height: row - 12, fill: `var(--${data.parts[k][1]})` }, svg);
        x += across(part);
      });
      drawn('text', { x: x + 8, y: y + 16 }, svg, digits(sum(p)) + ' ' + data.unit);
    }
    if (i === place[0])
      drawn('rect', { x: left, y, width: Math.max(3, x - left), height: row - 12, class: 'outline' }, svg);
  });
  const limit = data.limit && (points.find((p) => p && p.limit) || {}).limit;
  if (limit) {
    const x = left + across(limit);
    drawn('line', { x1: x, x2: x, y1: 14, y2: row * values.length + 16, class: 'limit' }, svg);
    drawn('text', { x, y: 10, 'text-anchor': 'middle' }, svg, data.limit);
  }
  return svg;
}

function show(data, place) {
  const point = pointAt(data, place), picture = byId('picture'), numbers = byId('numbers');
  document.querySelectorAll('#sliders output').forEach((o, k) => { o.textContent = data.sliders[k][1][place[k]]; });
  picture.replaceChildren();
  numbers.replaceChildren();
  byId('command').textContent = point ? 'lockstep ' + point.command : '';
  if (!point || point.refused)
    element('p', point ? point.refused : 'This schedule is not drawn there: chunks are of interleaved-1f1b, whose micro-batches are a multiple of its devices.', picture);
  if (point && point.numbers)
    data.numbers.forEach(([name, key, factor, unit], k) => {
      const card = element('div', '', numbers);
      card.className = 'card';
      card.dataset.key = key;
      card.dataset.value = point.numbers[k];
      element('b', digits(point.numbers[k] * factor), card);
      element('span', unit ? `${name}, ${unit}` : name, card);
    });
  if (point && point.svg) {
    const image = element('img', '', picture);
    image.alt = point.command;
    image.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(point.svg);
  } else if (!(point && point.refused) && data.parts.length > 0)
    picture.append(drawBars(data, place));
}

async function begin() {
  const data = await unpack(byId('data').textContent);
  /* The first point that is there: the middle of each slider, or what is nearest to its beginning. */
  const keys = Object.keys(data.points).filter((key) => !data.points[key].refused);
  const place = JSON.parse(keys[Math.floor(keys.length / 2)]).map((v, k) => data.sliders[k][1].indexOf(v));
  data.sliders.forEach(([name, values], k) => {
    const label = element('label', name, byId('sliders')), input = element('input', '', byId('sliders'));
    element('output', '', byId('sliders'));
    Object.assign(input, { type: 'range', min: 0, max: values.length - 1, step: 1, value: place[k], id: 'slider-' + k });
    label.htmlFor = input.id;
    input.addEventListener('input', () => { place[k] = Number(input.value); show(data, place); });
  });
  data.parts.forEach(([name, paint]) => {
    const entry = element('span', '', byId('legend'));
    element('i', '', entry).style.background = `var(--${paint})`;
    entry.append(name);
  });
  show(data, place);
  document.documentElement.dataset.ready = 1;
}

begin();
