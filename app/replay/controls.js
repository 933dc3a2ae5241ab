// What is said, and what people do.
const says = () => {
  if (at >= end()) {
    if (call.failed) return 'It failed here. ' + (call.stuck || '');
    const wrong = cells.filter((has) => has.some((count) => count !== 1)).length;
    return wrong ? `Done; but ${plural(wrong, 'cell')} of ${cells.length} do not hold every rank’s numbers once.` :
        'Done: every cell holds the numbers of all ranks, each once.';
  }
  if (realTime) {
    const waiting = call.whole.map((_, rank) => rank).filter((rank) => statusOf(rank).kind === 'waits');
    const flying = call.flights.map(progress).filter((share) => share !== null && share >= 0).length;
    return `${plural(flying, 'message')} under way` +
        (waiting.length ? `; ${ranksOf(waiting)} wait${waiting.length > 1 ? '' : 's'}.` : '.');
  }
  const step = Math.floor(at) + 1, now = call.flights.filter((flight) => flight.step === step);
  if (!now.length) {
    const stay = call.stays.find((one) => one.step === step);
    return `Step ${step} of ${call.steps}: ` + (!stay ? '' : stay.what === 'meet' ? 'all ranks meet, so each may read what the others wrote.' :
        stay.what === 'copy' ? 'each rank copies its numbers to where all can read.' : 'nothing moves between ranks.');
  }
  if (call.stays.some((stay) => stay.step === step && stay.what === 'direct')) {
    return `Step ${step} of ${call.steps}: ` + (now[0].half ? 'each rank adds up its part of all memories, and writes the sum to all.' :
        'each rank adds up what all have put where it can read.');
  }
  const adding = now.filter((flight) => flight.adds).length;
  const what = adding === now.length ? 'what arrives is added to what is there' :
      adding ? 'some is added, some replaces what is there' : 'what arrives replaces what is there';
  return `Step ${step} of ${call.steps}: ${plural(now.length, 'message')}; ${what}.`;
};
const numbersOf = (has) => {
  const once = has.flatMap((count, rank) => count === 1 ? [rank] : []);
  const more = has.flatMap((count, rank) => count > 1 ? [`rank ${rank} ${count} times`] : []);
  const whole = once.length === has.length;
  return [...(whole ? ['all ranks'] : once.length ? [ranksOf(once)] : []), ...more].join(' and ') || 'nobody';
};
const storyOf = (rank, part) => {
  const key = realTime ? 't' : 'step', [begin, end] = call.parts[part];
  const story = call.byStep.filter((change) => change.rank === rank && change.part === part && change[key] <= at)
      .map((change) => (change.sender < 0 ? (change.by === rank ? 'reduced from all memories' : `reduced by rank ${change.by}`) :
        `from rank ${change.sender}`) + ` in step ${change.step}` + (change.sender < 0 ? '' : change.adds ? ', added' : ', in place of what was there'));
  return `<b>Rank ${rank}, part ${part}</b> (bytes ${begin.toLocaleString('en')} to ${end.toLocaleString('en')}) ` +
      `holds the numbers of <b>${numbersOf(cells[index(rank, part)])}</b>: ` + ['its own from the beginning', ...story].join('; ') + '.';
};
const messageText = (flight) => `<b>${flight.half > 0 ? 'Memory' : 'Message'} from rank ${flight.from} to rank ${flight.to}</b>, step ${flight.step}: ` +
    `${plural(flight.bytes, 'byte')}, ${flight.parts > 1 ? 'parts' : 'part'} ${flight.out}${flight.parts > 1 ? ' to ' + (flight.out + flight.parts - 1) : ''}, ` +
    `with the numbers of <b>${numbersOf(flight.has[0])}</b>; ` +
    (flight.half < 0 ? `offered at ${us(flight.offered)}, and never taken.` :
      `${flight.adds ? 'added to' : 'replaces'} what is there. ` +
      (flight.offered < flight.begin ? `Offered at ${us(flight.offered)}; ` : '') +
      `begins at ${us(flight.begin)} and ends at ${us(flight.end)}.`);
const drawDetail = () => {
  byId('detail').innerHTML = !picked ? 'Click a cell to see how it came about, or a message on its way.' :
      picked.flight ? messageText(picked.flight) : storyOf(picked.rank, picked.part);
};

const draw = () => {
  bring();
  drawStage();
  drawTimes();
  drawDetail();
  slider.value = at;
  byId('says').textContent = says();
  byId('clock').textContent = realTime ? `${us(at)} of ${us(call.time)}` : `step ${Math.floor(at + 1e-9)} of ${call.steps}`;
  byId('play').textContent = playing ? '❚❚ Pause' : '▶ Play';
};

let before = 0;
const speed = () => Number(byId('speed').value);
const tick = (now) => {
  if (!playing) return;
  const seconds = Math.min(.1, (now - before) / 1000) * speed();
  before = now;
  at = Math.min(end(), at + seconds * (realTime ? call.time / CALL_SECONDS : 1 / STEP_SECONDS));
  if (at >= end()) playing = false;
  draw();
  if (playing) requestAnimationFrame(tick);
};
const play = (on) => {
  playing = on && call.steps > 0;
  if (playing && at >= end()) at = 0;
  before = performance.now();
  draw();
  if (playing) requestAnimationFrame(tick);
};
const go = (value) => {
  playing = false;
  at = Math.max(0, Math.min(end(), value));
  draw();
};
/// To the next moment at which something has changed.
const step = (by) => {
  if (!realTime) return go(by > 0 ? Math.floor(at + 1e-9) + 1 : Math.ceil(at - 1e-9) - 1);
  const moments = [0, ...call.flights.map((flight) => Math.min(call.time, flight.end)), call.time].sort((a, b) => a - b);
  const next = by > 0 ? moments.find((t) => t > at + 1e-6) : moments.filter((t) => t < at - 1e-6).pop();
  go(next === undefined ? (by > 0 ? end() : 0) : next);
};
const where = (canvas, event) => {
  const area = canvas.getBoundingClientRect(), style = getComputedStyle(canvas);
  return [event.clientX - area.left - parseFloat(style.paddingLeft), event.clientY - area.top - parseFloat(style.paddingTop)];
};
const hit = ([x, y]) => {
  for (const flight of [...call.flights].reverse()) {
    const share = progress(flight);
    if (share === null || !flight.parts) continue;
    const place = placeOf(flight, share);
    if (x >= place.x && x <= place.x + place.wide && y >= place.y && y <= place.y + place.high) return {flight};
  }
  for (let rank = 0; rank < call.ranks; ++rank) {
    if (y < box.top(rank) || y > box.top(rank) + box.high) continue;
    for (let part = 0; part < call.parts.length; ++part) {
      if (x >= box.left(part) && x <= box.left(part) + box.cell) return {rank, part};
    }
  }
  return null;
};
const setSpeed = (by) => {
  const select = byId('speed');
  select.selectedIndex = Math.max(0, Math.min(select.length - 1, select.selectedIndex + by));
};
const keys = {
  ' ': () => play(!playing), ArrowRight: () => step(1), ArrowLeft: () => step(-1),
  Home: () => go(0), End: () => go(end()), '+': () => setSpeed(1), '-': () => setSpeed(-1),
  t: () => { byId('clock-of').value = realTime ? 'step' : 'real'; changeClock(); },
};
const changeClock = () => {
  const done = at / end();
  setClock(byId('clock-of').value === 'real', 0);
  at = done * end();
  if (!realTime) at = Math.round(at);
  draw();
};
byId('play').onclick = () => play(!playing);
byId('first').onclick = () => go(0);
byId('back').onclick = () => step(-1);
byId('forward').onclick = () => step(1);
byId('last').onclick = () => go(end());
byId('clock-of').onchange = changeClock;
slider.oninput = () => go(Number(slider.value));
stage.onclick = (event) => { picked = hit(where(stage, event)); draw(); };
stage.onpointermove = (event) => { stage.style.cursor = hit(where(stage, event)) ? 'pointer' : ''; };
times.onclick = (event) => {
  const left = box.narrow ? 40 : 84, [x] = where(times, event);
  if (!realTime) byId('clock-of').value = 'real', setClock(true, 0);
  go((x - left) / (inner(times) - 12 - left) * call.time);
};
document.addEventListener('keydown', (event) => {
  const typing = event.target.closest('select, button') && event.key === ' ' || event.target.closest('select');
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});
const chooser = byId('chooser');
if (chooser) chooser.onchange = () => open(Number(chooser.value));
document.querySelectorAll('button[data-call]').forEach((button) => {
  button.onclick = () => { open(Number(button.dataset.call)); byId('player').scrollIntoView({block: 'nearest'}); };
});
addEventListener('resize', layout);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { readPalette(); open(call.index); });

// PAGE#call=2&step=1.5, or &time=12.5: to point somebody at a moment.
const hash = new URLSearchParams(location.hash.slice(1));
readPalette();
byId('player').hidden = false;
open(Math.min(calls.length - 1, Number(hash.get('call')) || 0));
if (hash.has('time')) byId('clock-of').value = 'real', setClock(true, 0), go(Number(hash.get('time')));
if (hash.has('step')) go(Number(hash.get('step')));
