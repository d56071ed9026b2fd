// What the page does beyond plain forms: suggestions while a question is typed, plots, and copying. Everything here is a
// refinement: without this file the same forms post and whole pages come back.
'use strict';

document.documentElement.classList.add('script');

// Suggestions: keywords, tables, columns and levels, in a list that the keyboard operates.

const MOST = 30;
const TOKEN = /'(?:[^']|'')*'?|"(?:[^"]|"")*"?|[\p{L}_][\p{L}\p{N}_]*|\d[\d.]*|<>|!=|<=|>=|\S/gu;
const plainName = (token) => (token.startsWith('"') ? token.slice(1).replace(/"$/, '').replaceAll('""', '"') : token);

class Suggestions {
  constructor(box) {
    this.box = box;
    this.words = JSON.parse(box.dataset.words);
    this.list = document.getElementById(box.getAttribute('aria-controls'));
    this.said = document.getElementById('suggested');
    this.items = [];
    this.at = -1;
    this.writing = false;
    box.addEventListener('input', () => this.writing || this.open(false));
    box.addEventListener('keydown', (event) => this.key(event));
    box.addEventListener('blur', () => this.close());
    box.addEventListener('click', () => this.close());
    this.list.addEventListener('mousedown', (event) => {
      const item = event.target.closest('[role=option]');
      if (!item) return;
      event.preventDefault(); // the box keeps the focus
      this.take([...this.list.children].indexOf(item));
    });
  }

  // What stands before the caret: the tokens, and the unfinished one that the caret touches.
  before() {
    const text = this.box.value.slice(0, this.box.selectionStart);
    const tokens = text.match(TOKEN) ?? [];
    const last = tokens.at(-1) ?? '';
    const openText = last.startsWith("'") && (last.length === 1 || !/(^|[^'])('')*'$/.test(last.slice(1)));
    const touches = last !== '' && text.endsWith(last) && (openText || /^["\p{L}_\d]/u.test(last));
    return touches ? [tokens.slice(0, -1), last, openText] : [tokens, '', false];
  }

  columns() {
    return this.words.tables.flatMap((table) => table.columns);
  }

  // The levels that may stand here, if the tokens end in `column =`, `column <>` or `column IN (a, b,`.
  levels(tokens) {
    let place = tokens.length - 1;
    if (!['=', '<>', '!='].includes(tokens[place])) {
      while (place >= 0 && (tokens[place] === ',' || /^['\d]/.test(tokens[place]))) place -= 1;
      if (tokens[place] !== '(' || (tokens[place - 1] ?? '').toUpperCase() !== 'IN') return null;
      place -= 1;
      if ((tokens[place - 1] ?? '').toUpperCase() === 'NOT') place -= 1;
    }
    const name = plainName(tokens[place - 1] ?? '').toLowerCase();
    const found = this.columns().find((column) => column.name.toLowerCase() === name);
    return found && found.levels.length ? found.levels.map((level) => ({ text: level, insert: level, kind: 'level' })) : null;
  }

  found(asked) {
    const [tokens, part, inText] = this.before();
    const previous = (tokens.at(-1) ?? '').toUpperCase();
    const levels = this.levels(tokens);
    let from = [];
    if (levels) from = levels;
    else if (inText || /^\d/.test(part)) return [[], part];
    else if (previous === 'FROM' || previous === 'JOIN') {
      from = this.words.tables.map((table) => ({ text: table.name, insert: table.insert, kind: 'table' }));
    } else if (part || asked) {
      from = [
        ...this.columns().map((column) => ({ text: column.name, insert: column.insert, kind: column.kind })),
        ...this.words.functions.map((text) => ({ text, insert: text, kind: 'function' })),
        ...this.words.keywords.map((text) => ({ text, insert: text, kind: '' })),
      ];
    }
    const bare = (text) => text.replace(/^['"]/, '').toLowerCase();
    const wanted = bare(part);
    const begins = from.filter((each) => bare(each.text).startsWith(wanted));
    const holds = wanted.length > 1 ? from.filter((each) => !begins.includes(each) && bare(each.text).includes(wanted)) : [];
    const all = [...begins, ...holds].slice(0, MOST);
    const done = all.length === 1 && all[0].insert.toLowerCase() === part.toLowerCase();
    return [done ? [] : all, part];
  }

  open(asked) {
    [this.items, this.part] = this.found(asked);
    this.at = -1;
    this.list.replaceChildren(
      ...this.items.map((each, place) => {
        const item = document.createElement('li');
        item.id = `suggestion-${place}`;
        item.setAttribute('role', 'option');
        item.setAttribute('aria-selected', 'false');
        const name = document.createElement('code');
        name.textContent = each.text;
        const kind = document.createElement('span');
        kind.textContent = each.kind;
        item.append(name, kind);
        return item;
      }),
    );
    this.list.hidden = !this.items.length;
    this.said.textContent = this.items.length ? `${this.items.length} suggestions, down arrow to choose` : '';
    this.box.removeAttribute('aria-activedescendant');
    if (this.items.length) this.put();
  }

  // The list goes under the caret: a copy of the box tells where that is.
  put() {
    const copy = document.createElement('div'), look = getComputedStyle(this.box);
    for (const name of ['font', 'lineHeight', 'padding', 'border', 'letterSpacing', 'tabSize']) copy.style[name] = look[name];
    Object.assign(copy.style, { position: 'absolute', visibility: 'hidden', whiteSpace: 'pre-wrap', overflowWrap: 'break-word' });
    copy.style.width = `${this.box.offsetWidth}px`;
    copy.textContent = this.box.value.slice(0, this.box.selectionStart - this.part.length);
    const mark = document.createElement('span');
    mark.textContent = '\u200b';
    copy.append(mark);
    this.box.parentElement.append(copy);
    const room = this.box.offsetWidth - this.list.offsetWidth;
    const top = mark.offsetTop + mark.offsetHeight - this.box.scrollTop + 4;
    this.list.style.left = `${Math.max(0, Math.min(mark.offsetLeft, room))}px`;
    this.list.style.top = `${this.box.offsetTop + Math.min(top, this.box.offsetHeight)}px`;
    copy.remove();
  }

  close() {
    this.items = [];
    this.at = -1;
    this.list.hidden = true;
    this.said.textContent = '';
    this.box.removeAttribute('aria-activedescendant');
  }

  move(step) {
    const many = this.items.length;
    this.list.children[this.at]?.setAttribute('aria-selected', 'false');
    this.at = this.at < 0 && step < 0 ? many - 1 : (this.at + step + many) % many;
    const item = this.list.children[this.at];
    item.setAttribute('aria-selected', 'true');
    item.scrollIntoView({ block: 'nearest' });
    this.box.setAttribute('aria-activedescendant', item.id);
  }

  take(place) {
    const { insert } = this.items[place];
    const end = this.box.selectionStart;
    this.box.focus();
    this.box.setSelectionRange(end - this.part.length, end);
    this.writing = true; // what is inserted opens no list
    if (!document.execCommand('insertText', false, insert)) {
      this.box.setRangeText(insert, end - this.part.length, end, 'end');
      this.box.dispatchEvent(new Event('input', { bubbles: true }));
    }
    this.writing = false;
    this.close();
  }

  key(event) {
    if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault();
      this.open(true);
    } else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.close();
      this.box.form.requestSubmit(this.box.form.querySelector('[data-ask]'));
    } else if (!this.items.length) return;
    else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      this.move(event.key === 'ArrowDown' ? 1 : -1);
    } else if (event.key === 'Escape') {
      event.preventDefault();
      this.close();
    } else if ((event.key === 'Enter' && this.at >= 0) || (event.key === 'Tab' && !event.shiftKey)) {
      event.preventDefault();
      this.take(Math.max(0, this.at));
    } else if (['ArrowLeft', 'ArrowRight', 'Home', 'End'].includes(event.key)) this.close();
  }
}

// Plots: bars with their intervals, or a line within its band. The numbers stand in the table beside each plot.

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const amount = (value) => {
  if (value === null || value === undefined) return '';
  const large = Math.abs(value) >= 10000;
  return value.toLocaleString('en-US', large ? { notation: 'compact', maximumFractionDigits: 1 } : { maximumFractionDigits: 3 });
};

function whiskers(low, high) {
  return (chart) => {
    const pen = chart.ctx;
    pen.save();
    pen.strokeStyle = colour('--whisker');
    pen.lineWidth = 1.5 * devicePixelRatio;
    const cap = Math.min(5 * devicePixelRatio, (chart.bbox.width / low.length) * 0.2);
    low.forEach((from, place) => {
      if (from === null || high[place] === null) return;
      const x = chart.valToPos(place, 'x', true);
      const ends = [from, high[place]].map((end) => chart.valToPos(end, 'y', true));
      pen.beginPath();
      pen.moveTo(x, ends[0]);
      pen.lineTo(x, ends[1]);
      for (const y of ends) {
        pen.moveTo(x - cap, y);
        pen.lineTo(x + cap, y);
      }
      pen.stroke();
    });
    pen.restore();
  };
}

function draw(box) {
  const { kind, labels, x, values, low, high } = JSON.parse(box.dataset.plot);
  const width = Math.floor(box.parentElement.clientWidth);
  if (!width) return;
  box.replaceChildren();
  const ends = [...values, ...low, ...high].filter((each) => each !== null);
  const least = Math.min(0, ...ends), most = Math.max(0, ...ends), room = (most - least || 1) * 0.06;
  const y = { range: [least < 0 ? least - room : 0, most + room] };
  const grid = { stroke: colour('--line'), width: 1 };
  const font = '12px system-ui, sans-serif';
  const axis = { stroke: colour('--faint'), font, ticks: { show: false } };
  const wide = 12 + 7 * Math.max(...y.range.map((each) => amount(Math.round(each)).length));
  const up = { ...axis, grid, size: Math.max(40, wide), values: (_, found) => found.map(amount) };
  const bars = kind === 'bars';
  const cut = (text) => (text.length > 14 ? `${text.slice(0, 13)}…` : text);
  const names = bars ? labels.map(cut) : [];
  const longest = Math.max(0, ...names.map((each) => each.length)) * 6.6;
  const tilted = bars && longest + 8 > (width - up.size) / names.length;
  const step = bars ? Math.max(1, Math.ceil((names.length * 15) / (width - up.size))) : 1;
  const along = bars
    ? {
        ...axis,
        grid: { show: false },
        rotate: tilted ? -55 : 0,
        size: tilted ? 22 + longest * 0.82 : 30,
        splits: () => names.map((_, place) => place).filter((place) => place % step === 0),
        values: (_, places) => places.map((place) => names[place]),
      }
    : { ...axis, grid: { show: false }, size: 30 };
  const series = bars
    ? [{}, { stroke: colour('--bar'), fill: colour('--bar'), paths: uPlot.paths.bars({ size: [0.62, 64] }), points: { show: false } }]
    : [
        {},
        { stroke: 'transparent', points: { show: false } },
        { stroke: 'transparent', points: { show: false } },
        { stroke: colour('--bar'), width: 2, points: { show: values.length < 60, size: 5, fill: colour('--bar') } },
      ];
  const data = bars ? [values.map((_, place) => place), values] : [x, high, low, values];
  new uPlot(
    {
      width,
      height: Math.round(Math.min(300, Math.max(200, width * 0.5))) + (tilted ? Math.round(longest * 0.5) : 0),
      tzDate: (stamp) => uPlot.tzDate(new Date(stamp * 1e3), 'UTC'),
      legend: { show: false },
      cursor: { show: false },
      scales: { x: bars ? { time: false, range: [-0.6, values.length - 0.4] } : { time: kind === 'days' }, y },
      axes: [along, up],
      series,
      bands: bars ? [] : [{ series: [1, 2], fill: colour('--bar-soft') }],
      hooks: bars ? { draw: [whiskers(low, high)] } : {},
    },
    data,
    box,
  );
  box.dataset.drawn = String(values.length);
}

const drawAll = (which) => document.querySelectorAll(which).forEach(draw);

// The rest: questions put into the box, texts copied, plots drawn when they come and when their room changes.

function fill(text) {
  const box = document.getElementById('sql');
  if (!box) return false;
  box.value = text;
  box.dispatchEvent(new Event('input', { bubbles: true }));
  box.focus();
  box.scrollIntoView({ block: 'nearest' });
  return true;
}

async function copy(button) {
  const from = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(from.textContent);
    button.textContent = 'Copied';
  } catch {
    getSelection().selectAllChildren(from); // without the clipboard's leave the text is selected instead
    button.textContent = 'Selected';
  }
  setTimeout(() => (button.textContent = 'Copy'), 2000);
}

document.addEventListener('click', (event) => {
  const button = event.target.closest('button');
  if (button?.dataset.copy) copy(button);
  else if (button?.dataset.fill !== undefined && fill(button.value)) event.preventDefault();
  else if (button?.dataset.dismiss !== undefined) {
    event.preventDefault();
    button.closest('.card').remove();
    document.getElementById('sql')?.focus();
  }
});

// What a form for models asks, by the kind that is chosen.
function serve() {
  const kind = document.getElementById('kind');
  if (!kind) return;
  for (const field of document.querySelectorAll('[data-for]')) field.hidden = !field.dataset.for.split(' ').includes(kind.value);
}
document.addEventListener('change', (event) => event.target.id === 'kind' && serve());

// An answer is on its way: a price that is still being computed for it is of no use.
document.addEventListener('htmx:before:request', (event) => {
  const box = document.getElementById('sql');
  if (box && event.target === box.form) htmx.trigger(box, 'htmx:abort', {}, false); // not to the form around it
});
document.addEventListener('htmx:after:swap', (event) => {
  drawAll('.plot:not([data-drawn])');
  if (event.target.closest?.('#question, .answer') && event.target.id !== 'sql') {
    document.getElementById('examples')?.removeAttribute('open');
    const box = document.getElementById('sql');
    if (box?.value.trim()) htmx.trigger(box, 'answered', {}, false); // what was known changed, and so may the price
  }
});
document.addEventListener('htmx:error', () => {
  const place = document.getElementById('trouble');
  if (place) place.hidden = false;
});
document.addEventListener('htmx:after:request', () => {
  const place = document.getElementById('trouble');
  if (place) place.hidden = true;
});

const box = document.getElementById('sql');
if (box) new Suggestions(box);
serve();
drawAll('.plot');
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => drawAll('.plot'));
let drawnAt = innerWidth;
addEventListener('resize', () => {
  if (innerWidth === drawnAt) return;
  drawnAt = innerWidth;
  requestAnimationFrame(() => drawAll('.plot'));
});
