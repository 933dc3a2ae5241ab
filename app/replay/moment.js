// What holds at a moment of a call, by either clock.
const byId = (id) => document.getElementById(id);
const calls = JSON.parse(byId('calls').textContent);
const stage = byId('stage'), times = byId('times'), slider = byId('at');
const STEP_SECONDS = 1.3, CALL_SECONDS = 12;
const plural = (n, word) => n.toLocaleString('en') + ' ' + word + (n === 1 ? '' : 's');
const list = (ranks) => ranks.length < 2 ? ranks.join('') :
    ranks.slice(0, -1).join(', ') + ' and ' + ranks[ranks.length - 1];
const ranksOf = (ranks) => `rank${ranks.length > 1 ? 's' : ''} ${list(ranks)}`;
const us = (t) => (Math.abs(t) < 100 ? t.toFixed(1) : Math.round(t).toLocaleString('en')) + ' µs';

// Colours are the page's, so they follow the light and the dark.
let palette = {};
const readPalette = () => {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  palette = {of};
  for (const name of ['paper', 'ink', 'soft', 'line', 'wash', 'bad', 'wait', 'move', 'add', 'c2']) {
    palette[name] = of('--' + name);
  }
  palette.light = of('--many');
};
const colour = (rank) => call.ranks <= 8 ? palette.of('--r' + rank) :
    `hsl(${Math.round(360 * rank / call.ranks)} 65% ${palette.light})`;

let call, colours = [], cells, cursor, playing = false, realTime = false, at = 0, picked = null;
const index = (rank, part) => rank * call.parts.length + part;

const open = (number) => {
  call = calls[number];
  call.index = number;
  if (!call.flights[0] || !('from' in call.flights[0])) unpack(call);
  colours = Array.from({length: call.ranks}, (_, rank) => colour(rank));
  drawStrip();
  picked = null;
  setClock(realTime, 0);
  document.querySelectorAll('[data-shows]').forEach((element) => {
    element.hidden = Number(element.dataset.shows) !== number;
  });
  document.querySelectorAll('[data-call]').forEach((element) => {
    element.toggleAttribute('aria-current', Number(element.dataset.call) === number);
  });
  const chooser = byId('chooser');
  if (chooser) chooser.value = number;
  layout();
};

const unpack = (call) => {
  call.flights = call.flights.map(([from, to, offered, begin, end, step, bytes, out, into, parts, adds, half]) =>
    ({from, to, offered, begin, end, step, bytes, out, into, parts, adds, half}));
  call.changes = call.changes.map(([t, step, rank, part, by, sender, adds, has], order) =>
    ({t, step, rank, part, by, sender, adds, has: call.has[has], order}));
  call.stays = call.stays.map(([rank, what, to, from, begin, came, end, step, adds, failed]) =>
    ({rank, what, to, from, begin, came, end, step, adds, failed}));
  call.byTime = call.changes;
  call.byStep = [...call.changes].sort((a, b) => a.step - b.step || a.order - b.order);
  // What each message carries is what was there before its step, and of what a rank writes into
  // others' memory, after it.
  const state = firstState(call);
  let next = 0;
  const reach = (step) => {
    for (; next < call.byStep.length && call.byStep[next].step <= step; ++next) {
      const change = call.byStep[next];
      state[change.rank * call.parts.length + change.part] = change.has;
    }
  };
  const ordered = [...call.flights].sort((a, b) => (a.step - (a.half < 2)) - (b.step - (b.half < 2)));
  for (const flight of ordered) {
    reach(flight.step - (flight.half < 2));
    const first = flight.from * call.parts.length + flight.out;
    flight.has = state.slice(first, first + flight.parts);
  }
};
const firstState = (call) => {
  const state = [];
  for (let rank = 0; rank < call.ranks; ++rank) {
    const own = Array.from({length: call.ranks}, (_, other) => Number(other === rank));
    for (let part = 0; part < call.parts.length; ++part) state.push(own);
  }
  return state;
};

const end = () => realTime ? call.time : call.steps;
const setClock = (real, value) => {
  realTime = real;
  cursor = null;
  at = value;
  slider.max = end();
  slider.step = realTime ? call.time / 1000 : 0.01;
};
/// Brings `cells` to the moment.
const bring = () => {
  const changes = realTime ? call.byTime : call.byStep;
  const key = realTime ? 't' : 'step';
  if (!cursor || cursor.at > at) cursor = {at: 0, next: 0}, cells = firstState(call);
  for (; cursor.next < changes.length && changes[cursor.next][key] <= at; ++cursor.next) {
    const change = changes[cursor.next];
    cells[index(change.rank, change.part)] = change.has;
  }
  cursor.at = at;
};
/// How far a message is: below 0 it is only offered, null: not to be seen.
const progress = (flight) => {
  if (flight.half < 0) return at >= (realTime ? flight.offered : call.steps) ? -1 : null;  // nobody takes it
  if (realTime) {
    if (at < flight.offered || at >= flight.end) return null;
    return at < flight.begin ? -1 : (at - flight.begin) / Math.max(1e-9, flight.end - flight.begin);
  }
  if (flight.step !== Math.floor(at) + 1) return null;
  const share = at - Math.floor(at);
  if (!flight.half) return share;
  return flight.half === 1 ? (share < .5 ? 2 * share : null) : share < .5 ? null : 2 * share - 1;
};
const stayOf = (rank) => call.stays.find((stay) => stay.rank === rank && (realTime ?
    stay.begin <= at && at < stay.end : stay.step === Math.floor(at) + 1 && at < call.steps));
const isStuck = (rank) => call.failed && at >= (realTime ? call.stops[rank] : call.steps);
const nameOf = (stay) => {
  const parts = [];
  if (stay.to >= 0) parts.push('sends to ' + stay.to);
  if (stay.from >= 0) parts.push('receives from ' + stay.from);
  return parts.join(', ') || {meet: 'meets all ranks', copy: 'copies to where all can read',
    direct: 'adds up all memories', read: 'reads a sum', spread: 'copies its part from one rank to all'}[stay.what] || stay.what;
};
const statusOf = (rank) => {
  if (isStuck(rank)) {
    const last = call.stays.filter((stay) => stay.rank === rank).pop();
    return {kind: 'failed', text: last && last.failed ? 'stopped: ' + nameOf(last) : 'stopped'};
  }
  const stay = stayOf(rank);
  if (!stay) {
    if (at >= end()) return {kind: 'idle', text: ''};
    return {kind: 'idle', text: !realTime ? '' : at < call.whole[rank][0] ? 'has not come' :
        at >= call.whole[rank][1] ? 'is done' : 'computes'};
  }
  const waits = realTime && at < stay.came;
  if (!waits) return {kind: 'busy', text: nameOf(stay)};
  const missing = stay.what === 'meet' ? call.stays.filter((other) => other.what === 'meet' &&
      other.step === stay.step && other.begin > at).map((other) => other.rank) : call.flights.flatMap((flight) =>
    flight.begin <= at ? [] : flight.from === rank && flight.offered <= at ? [flight.to] :
        flight.to === rank && flight.end === stay.end && flight.offered > at ? [flight.from] : []);
  return {kind: 'waits', text: 'waits for ' + (missing.length ? ranksOf([...new Set(missing)]) : 'others')};
};
