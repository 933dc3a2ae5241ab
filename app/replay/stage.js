// The stage: ranks, their parts, and the messages between them; below it who does what when.
let box = {};
const context = (canvas, width, height) => {
  const scale = devicePixelRatio || 1;
  canvas.style.height = height + 'px';
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const drawing = canvas.getContext('2d');
  drawing.setTransform(scale, 0, 0, scale, 0, 0);
  return drawing;
};
const inner = (canvas) => {
  const style = getComputedStyle(canvas);
  return canvas.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
};
const layout = () => {
  const width = inner(stage), p = call.ranks, m = call.parts.length;
  const narrow = width < 640, pick = (...sizes) => sizes[p <= 4 ? 0 : p <= 8 ? 1 : p <= 16 ? 2 : p <= 32 ? 3 : 4];
  const label = narrow ? 40 : 84, status = p > 16 ? 0 : narrow ? 0 : 208;
  const gapX = m <= 8 ? (narrow ? 6 : 10) : m <= 32 ? 3 : m <= 128 ? 1 : 0;
  const cell = Math.min(150, (width - label - status - 9 - gapX * (m - 1)) / Math.max(1, m));
  const high = pick(46, 38, 22, 15, 10);
  const gap = pick(30, 24, 12, 6, 3);
  const head = 30;
  box = {radius: Math.floor(high / 7), width, narrow, label, cell, gapX, high, gap, head, status,
    top: (rank) => head + rank * (high + gap), left: (part) => label + part * (cell + gapX),
    height: head + p * (high + gap)};
  draw();
};
/// All colours side by side, a pixel each: stripes are cut from it, those of neighbours at once.
const strip = document.createElement('canvas');
const drawStrip = () => {
  strip.width = call.ranks;
  strip.height = 1;
  const drawing = strip.getContext('2d');
  colours.forEach((colour, rank) => {
    drawing.fillStyle = colour;
    drawing.fillRect(rank, 0, 1, 1);
  });
};
const stripes = (drawing, has, x, y, width, height) => {
  const wide = width / has.length;
  drawing.imageSmoothingEnabled = false;
  for (let rank = 0, end; rank < has.length; rank = end) {
    for (end = rank + 1; end < has.length && !has[end] === !has[rank];) ++end;
    if (has[rank]) drawing.drawImage(strip, rank, 0, end - rank, 1, x + rank * wide, y, (end - rank) * wide, height);
  }
  drawing.fillStyle = palette.paper;
  for (let rank = 1; rank < has.length && has.length <= 12; ++rank) drawing.fillRect(x + rank * wide - .5, y, 1, height);
};
const rounded = (drawing, x, y, width, height, radius) => {
  drawing.beginPath();
  drawing.roundRect(x, y, width, height, Math.min(radius, width / 2, height / 2));
};
const drawCell = (drawing, rank, part) => {
  const has = cells[index(rank, part)], x = box.left(part), y = box.top(rank);
  const whole = has.every((count) => count === 1), twice = has.some((count) => count > 1);
  const bad = twice || (!whole && isStuck(rank));
  drawing.save();
  rounded(drawing, x, y, box.cell, box.high, box.radius);
  drawing.fillStyle = palette.wash;
  drawing.fill();
  if (box.radius > 1) drawing.clip();
  stripes(drawing, has, x, y, box.cell, box.high);
  drawing.restore();
  rounded(drawing, x, y, box.cell, box.high, box.radius);
  const chosen = picked && picked.rank === rank && picked.part === part;
  drawing.lineWidth = bad || chosen ? 2.5 : whole && box.high > 12 ? 2 : 1;
  drawing.strokeStyle = bad ? palette.bad : chosen || whole ? palette.ink : palette.line;
  drawing.stroke();
  const most = Math.max(...has);
  if (!(most > 1) || box.cell < 26 || box.high < 14) return;
  badge(drawing, x + box.cell / 2, y + box.high / 2, most + '×', palette.bad);
};
const badge = (drawing, x, y, text, background) => {
  drawing.font = '600 12px system-ui, sans-serif';
  const width = Math.max(18, drawing.measureText(text).width + 9);
  rounded(drawing, x - width / 2, y - 9, width, 18, 9);
  drawing.fillStyle = background;
  drawing.fill();
  drawing.fillStyle = palette.paper;
  drawing.textAlign = 'center';
  drawing.textBaseline = 'middle';
  drawing.fillText(text, x, y + .5);
};
const placeOf = (flight, share) => {
  const ease = share < 0 ? .2 : realTime ? share : share * share * (3 - 2 * share);
  const wide = flight.parts * box.cell + (flight.parts - 1) * box.gapX, high = Math.max(5, box.high * .56);
  const x1 = box.left(flight.out), x2 = box.left(flight.into);
  const y1 = box.top(flight.from), y2 = box.top(flight.to), far = Math.abs(flight.from - flight.to) > 1;
  const bow = far ? Math.min(box.cell * .5, 46) * Math.sin(Math.PI * ease) * (flight.to > flight.from ? 1 : -1) : 0;
  return {x: x1 + (x2 - x1) * ease + bow, y: y1 + (y2 - y1) * ease + (box.high - high) / 2, wide, high};
};
const drawFlight = (drawing, flight, share) => {
  if (!flight.parts) return;
  const {x, y, wide, high} = placeOf(flight, share);
  drawing.save();
  drawing.globalAlpha = share < 0 ? .6 : 1;
  drawing.shadowColor = 'rgba(0, 0, 0, .35)';
  drawing.shadowBlur = box.high > 12 ? 7 : 2;
  drawing.shadowOffsetY = 1.5;
  rounded(drawing, x, y, wide, high, box.radius);
  drawing.fillStyle = palette.paper;
  drawing.fill();
  drawing.restore();
  drawing.save();
  rounded(drawing, x, y, wide, high, box.radius);
  drawing.clip();
  flight.has.forEach((has, part) => {
    stripes(drawing, has, x + part * (box.cell + box.gapX), y, box.cell, high);
  });
  drawing.restore();
  rounded(drawing, x, y, wide, high, box.radius);
  drawing.lineWidth = box.high > 12 ? 2 : 1;
  drawing.strokeStyle = flight.half < 0 ? palette.bad : share < 0 ? palette.soft : palette.ink;
  drawing.stroke();
  if (box.high < 20) return;
  if (flight.half < 0) return;
  badge(drawing, x + Math.min(2, wide / 2), y + high / 2, flight.adds ? '+' : '=', flight.adds ? palette.add : palette.move);
};
const drawRank = (drawing, rank) => {
  const y = box.top(rank), status = statusOf(rank), middle = y + box.high / 2;
  if (status.kind !== 'idle') {
    rounded(drawing, box.label - 8, y - 5, box.left(call.parts.length) - box.gapX - box.label + 16, box.high + 10, 9);
    drawing.fillStyle = {waits: palette.wait, failed: palette.bad, busy: palette.wash}[status.kind];
    drawing.globalAlpha = status.kind === 'failed' ? .22 : 1;
    drawing.fill();
    drawing.globalAlpha = 1;
  }
  if (box.high >= 14) {
    rounded(drawing, 0, middle - Math.min(13, box.high / 2), box.narrow ? 28 : 64, Math.min(26, box.high), 13);
    drawing.fillStyle = colours[rank];
    drawing.fill();
  }
  drawing.fillStyle = box.high >= 14 ? palette.paper : palette.soft;
  drawing.textAlign = 'center';
  drawing.textBaseline = 'middle';
  drawing.font = `600 ${Math.min(13, box.high)}px system-ui, sans-serif`;
  drawing.fillText(box.narrow || box.high < 14 ? rank : 'rank ' + rank, box.narrow ? 14 : 32, middle + .5);
  if (!status.text || !box.status) return;
  drawing.fillStyle = status.kind === 'failed' ? palette.bad : palette.soft;
  drawing.textAlign = 'left';
  drawing.font = '13px system-ui, sans-serif';
  drawing.fillText(status.text, box.left(call.parts.length) - box.gapX + 16, middle + .5, box.status - 8);
};
const drawStage = () => {
  const drawing = context(stage, box.width, box.height);
  drawing.fillStyle = palette.soft;
  drawing.font = '12.5px system-ui, sans-serif';
  drawing.textAlign = 'center';
  drawing.textBaseline = 'middle';
  const every = Math.ceil(24 / (box.cell + box.gapX));
  for (let part = 0; part < call.parts.length; part += every) {
    drawing.fillText((box.cell > 60 ? 'part ' : '') + part, box.left(part) + box.cell / 2, 11);
  }
  for (let rank = 0; rank < call.ranks; ++rank) drawRank(drawing, rank);
  for (let rank = 0; rank < call.ranks; ++rank) {
    for (let part = 0; part < call.parts.length; ++part) drawCell(drawing, rank, part);
  }
  for (const flight of call.flights) {
    const share = progress(flight);
    if (share !== null) drawFlight(drawing, flight, share);
  }
};

const lane = () => Math.max(3, Math.min(16, 200 / call.ranks));
const drawTimes = () => {
  const width = inner(times), high = lane(), left = box.narrow ? 40 : 84, right = width - 12;
  const drawing = context(times, width, call.ranks * (high + 2) + 30);
  const x = (t) => left + (right - left) * t / call.time;
  drawing.font = '11.5px system-ui, sans-serif';
  drawing.textBaseline = 'middle';
  for (let rank = 0; rank < call.ranks && high >= 9; ++rank) {
    drawing.fillStyle = palette.soft;
    drawing.textAlign = 'left';
    drawing.fillText((box.narrow ? '' : 'rank ') + rank, 0, 4 + rank * (high + 2) + high / 2);
  }
  call.whole.forEach(([begin, end], rank) => {
    drawing.fillStyle = palette.wash;
    drawing.fillRect(x(begin), 4 + rank * (high + 2), Math.max(1, x(end) - x(begin)), high);
  });
  const now = realTime ? null : Math.floor(at) + 1;
  for (const stay of call.stays) {
    const y = 4 + stay.rank * (high + 2);
    drawing.globalAlpha = now === null || stay.step === now || at >= call.steps ? 1 : .35;
    drawing.fillStyle = stay.failed ? palette.bad : palette.wait;
    drawing.fillRect(x(stay.begin), y, Math.max(.6, x(stay.came) - x(stay.begin)), high);
    drawing.fillStyle = stay.failed ? palette.bad : stay.adds ? palette.add : stay.to < 0 && stay.from < 0 ? palette.c2 : palette.move;
    drawing.fillRect(x(stay.came), y, Math.max(.6, x(stay.end) - x(stay.came)), high);
    drawing.fillStyle = palette.paper;
    drawing.fillRect(x(stay.end) - .5, y, .7, high);
  }
  drawing.globalAlpha = 1;
  const bottom = 8 + call.ranks * (high + 2);
  drawing.fillStyle = palette.soft;
  const marks = box.narrow ? 2 : 4;
  for (let mark = 0; mark <= marks; ++mark) {
    drawing.textAlign = mark === 0 ? 'left' : mark === marks ? 'right' : 'center';
    drawing.fillText(us(call.time * mark / marks), x(call.time * mark / marks), bottom + 8);
  }
  if (!realTime) return;
  drawing.fillStyle = palette.ink;
  drawing.fillRect(x(at) - .75, 0, 1.5, bottom);
};
