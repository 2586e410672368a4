
const OTHER_UNIT = 'The number is right in another unit than the one that the question names.';
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const verdicts = {}; /* by question, and "configuration": right, wrong, or not there */
const key = (place) => JSON.stringify(place);

/* --- numbers: as src/ask/lab.h says, which tests/browser/labs.py compares --- */

function isOtherUnit(given, value, reach) {
  return [100, 1000, 1e6, 1e9, 1024, 1048576, 8, 60, 3600].some((f) => Math.abs(given * f - value) < reach || Math.abs(given / f - value) < reach)
    || [1.073741824, 1.048576].some((f) => Math.abs(given * f - value) < reach);
}

function gradeNumber(question, given) {
  let reach = question.within * Math.abs(question.value), nearest = Infinity, hint = question.hint;
  for (const [wrong, text] of question.mistakes) {
    const half = Math.abs(wrong - question.value) / 2, off = Math.abs(given - wrong);
    reach = Math.min(reach, half);
    if (off > Math.min(half, 0.1 * Math.abs(wrong)) || off >= nearest) continue;
    nearest = off;
    hint = text;
  }
  if (Math.abs(given - question.value) <= reach) return { verdict: 'right', hint: null };
  if (question.unit && isOtherUnit(given, question.value, Math.min(reach, nearest))) hint = OTHER_UNIT;
  return { verdict: 'wrong', hint };
}

/* --- what is shown --- */

function showVerdict(name, verdict, hint) {
  const place = byId('verdict-' + name);
  place.replaceChildren();
  place.dataset.verdict = verdict;
  if (verdict === 'open') return;
  element('b', verdict, place).className = verdict === 'right' ? 'good' : 'bad';
  element('span', hint || '', place);
}

function showSum(data) {
  const names = data.questions.map((q) => q.name).concat(data.task ? ['configuration'] : []);
  const count = (verdict) => names.filter((name) => (verdicts[name] || 'open') === verdict).length;
  byId('sum').textContent = `${data.name}: ${count('right')} right, ${count('wrong')} wrong, ${count('open')} open`;
}

const answerOf = (question) => byId('answer-' + question.name).value.trim();
const placeOf = (data) => data.task.knobs.map(([, values], k) => values[byId('knob-' + k).value]);
const optionsOf = (data) => (data.task ? (data.task.points[key(placeOf(data))] || { options: '' }).options : '');

function showHandIn(data) {
  const given = data.questions.filter((q) => NUMBER.test(answerOf(q))).map((q) => `${q.name}=${answerOf(q)}`);
  byId('hand-in').textContent = ['lockstep lab check ' + data.name, ...given, optionsOf(data)].filter((word) => word).join(' ');
}

function unlock(data) {
  if (byId('locked').hidden || !data.questions.every((q) => verdicts[q.name])) return;
  byId('locked').hidden = true;
  document.querySelectorAll('.output').forEach((output, k) => {
    output.hidden = false;
    output.querySelector('pre').textContent = data.outputs[k];
  });
  if (data.task) showStep(data);
}

function checkNumbers(data) {
  for (const question of data.questions) {
    const text = answerOf(question), number = NUMBER.test(text) ? Number(text) : NaN;
    delete verdicts[question.name];
    if (!text)
      showVerdict(question.name, 'open');
    else if (!Number.isFinite(number))
      showVerdict(question.name, 'no number', `expected a number${question.unit ? ' in ' + question.unit : ''}`);
    else {
      const { verdict, hint } = gradeNumber(question, number);
      verdicts[question.name] = verdict;
      showVerdict(question.name, verdict, hint);
    }
  }
  showSum(data);
  unlock(data);
}

/* --- the configuration --- */

function showStep(data) {
  const point = data.task.points[key(placeOf(data))], step = byId('step');
  step.replaceChildren();
  if (!byId('locked').hidden || !point || point.refused) return;
  const cards = element('div', '', step);
  cards.className = 'cards';
  for (const [number, name] of [[digits(point.step) + ' s', 'step'], [digits(point.needed / 1e9) + ' GB', `needed, of ${digits(point.capacity / 1e9)}`],
    [digits(point.bubble * 100) + ' %', 'bubble']]) {
    const card = element('div', '', cards);
    card.className = 'card';
    element('b', number, card);
    element('span', name, card);
  }
  const table = element('table', '', step);
  for (const [name, seconds] of point.parts) {
    const row = element('tr', '', table), share = seconds / point.step * 100;
    element('td', name, row).className = 'word';
    element('td', digits(seconds * 1e3) + ' ms', row);
    element('td', share.toFixed(1) + ' %', row);
    const bar = element('span', '', element('td', '', row));
    bar.className = 'bar';
    bar.style.cssText = `width: ${3 * share}px; background: var(--accent)`;
    bar.parentNode.className = 'word';
  }
}

function chooseKnob(data) {
  byId('found').textContent = ['lockstep ' + data.task.run, optionsOf(data)].filter((word) => word).join(' ');
  showVerdict('configuration', 'open');
  delete verdicts.configuration;
  showStep(data);
  showSum(data);
  showHandIn(data);
}

function checkFound(data) {
  const point = data.task.points[key(placeOf(data))];
  delete verdicts.configuration;
  if (!point)
    showVerdict('configuration', 'open');
  else if (point.refused)
    showVerdict('configuration', 'refused', point.refused.join('; '));
  else {
    verdicts.configuration = point.verdict;
    showVerdict('configuration', point.verdict, point.hint);
  }
  showSum(data);
}

function addKnobs(data) {
  data.task.knobs.forEach(([flag, values], k) => {
    const label = element('label', '--' + flag, byId('knobs')), select = element('select', '', label);
    select.id = 'knob-' + k;
    values.forEach((value, i) => { element('option', value === null ? 'not given' : value === true ? 'given' : value, select).value = i; });
    select.addEventListener('change', () => chooseKnob(data));
  });
  byId('check-found').addEventListener('click', () => checkFound(data));
  chooseKnob(data);
}

async function begin() {
  const data = await unpack(byId('data').textContent);
  data.questions.forEach((q) => {
    byId('answer-' + q.name).addEventListener('input', () => showHandIn(data));
    byId('answer-' + q.name).addEventListener('keydown', (event) => { if (event.key === 'Enter') checkNumbers(data); });
  });
  byId('check').addEventListener('click', () => checkNumbers(data));
  if (data.task) addKnobs(data);
  showSum(data);
  showHandIn(data);
  document.documentElement.dataset.ready = 1;
}

begin();
