(() => {
  const data = JSON.parse(document.getElementById('simulation').textContent);
  const {strategies, layouts, points} = data;
  const byId = (id) => document.getElementById(id);
  const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const color = (k) => 'c' + (k % 8);
  const ranksOf = (k) => layouts[k][0] * layouts[k][1];

  // What the sliders move: costs of a message between machines and inside, or how many times as much
  // as was fitted to each strategy.
  const BETWEEN = 0, INSIDE = 1, LATENCY = 0, BYTE = 1, ADDED = 2;
  const level = data.machines ? BETWEEN : INSIDE;
  const first = () => ({
    costs: data.given ? strategies[0].costs.map((costs) => [...costs]) : [[1, 1, 1], [1, 1, 1]],
    layout: data.start, bytes: data.bytes,
  });
  let state = first();
  const costsOf = (strategy) => data.given ? state.costs
      : strategy.costs.map((costs, l) => costs.map((cost, i) => cost * state.costs[l][i]));

  // Latency, moving and adding of the strategy's fastest way: products, no formula of its own.
  const partsOf = (strategy, layout, n) => {
    const costs = costsOf(strategy);
    let best = null;
    for (const way of strategy.ways[layout]) {
      const parts = [0, 1, 2].map((i) => (i === LATENCY ? 1 : n) *
          (way[i] * costs[BETWEEN][i] + way[3 + i] * costs[INSIDE][i]));
      parts.way = way;
      parts.sum = parts[0] + parts[1] + parts[2];
      if (!best || parts.sum < best.sum) best = parts;
    }
    return best;
  };
  const secondsOf = (strategy, layout, n) => {
    const parts = partsOf(strategy, layout, n);
    return parts ? parts.sum : NaN;
  };
  const fastestAt = (layout, n) => {
    let best = -1, least = Infinity;
    strategies.forEach((strategy, k) => {
      const seconds = secondsOf(strategy, layout, n);
      if (seconds < least) [best, least] = [k, seconds];
    });
    return best;
  };

  const digits = (value) => value >= 1000 ? value.toFixed(0) : String(+value.toPrecision(3));
  const inUnits = (value, units, space) => {
    let [name, size] = units[0];
    for (const unit of units) if (value >= 0.9995 * unit[1]) [name, size] = unit;
    return digits(value / size) + space + name;
  };
  const timeText = (s) => inUnits(s, [['ns', 1e-9], ['us', 1e-6], ['ms', 1e-3], ['s', 1]], ' ');
  const rateText = (r) => inUnits(r, [['K', 1e3], ['M', 1e6], ['G', 1e9], ['T', 1e12]], ' ') + 'B/s';
  const LOW = Math.min(64, data.bytes, ...points.map((point) => point.bytes));
  const HIGH = Math.max(1 << 30, data.bytes, ...points.map((point) => point.bytes));
  const sizeText = (n) => n < 1024 ? digits(n) + ' bytes' : inUnits(n, [['', 1], ['K', 1024], ['M', 1 << 20], ['G', 1 << 30], ['T', Math.pow(2, 40)]], '');
  const whereText = () => {
    const [machines, each] = layouts[state.layout];
    return ranksOf(state.layout) + ' ranks on ' +
        (machines > 1 ? machines + ' machines' : 'one machine') + (data.machines && machines > 1 ? ` of ${each}` : '');
  };

  // Sliders. Each has a number that moves on a logarithm, and says it in words.
  const sliders = [];
  const slider = (name, low, high, step, get, set, text) => {
    const label = document.createElement('label');
    label.innerHTML = `<span>${name}</span><output></output><input type="range">`;
    const [, output, input] = label.children;
    Object.assign(input, {min: Math.min(low, get()), max: Math.max(high, get()), step: 'any'});
    const show = () => {
      input.value = get();
      output.textContent = text();
      input.setAttribute('aria-valuetext', output.textContent);
    };
    input.addEventListener('input', () => { set(Number(input.value)); redraw(); });
    // With step="any" an arrow key would move by a hundredth of the whole.
    input.addEventListener('keydown', (event) => {
      const way = {ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10}[event.key];
      if (!way) return;
      event.preventDefault();
      set(Math.min(input.max, Math.max(input.min, get() + way * step)));
      redraw();
    });
    byId('sliders').appendChild(label);
    sliders.push(show);
  };
  const STEP = 0.05;
  const costSlider = (name, l, i, low, high, text, sign) => {
    const set = (value) => {
      state.costs[l][i] = Math.pow(10, sign * value);
      if (i === ADDED) state.costs[1 - l][i] = state.costs[l][i];
    };
    slider(name, Math.log10(low), Math.log10(high), STEP, () => sign * Math.log10(state.costs[l][i]), set,
        () => text(Math.pow(state.costs[l][i], sign)));
  };
  const FREE = 1e14;  // bytes a second
  const makeSliders = () => {
    const place = data.machines ? ' between machines' : '';
    if (data.given) {
      if (state.costs[level][ADDED] === 0) for (const costs of state.costs) costs[ADDED] = 1 / FREE;
      costSlider('latency' + place, level, LATENCY, 1e-8, 1e-2, timeText, 1);
      costSlider('bandwidth' + place, level, BYTE, 1e7, 1e12, rateText, -1);
      if (data.machines) {
        costSlider('latency inside', INSIDE, LATENCY, 1e-8, 1e-2, timeText, 1);
        costSlider('bandwidth inside', INSIDE, BYTE, 1e7, 1e12, rateText, -1);
      }
      costSlider('adding', level, ADDED, 1e9, FREE, (r) => r > 0.5 * FREE ? 'free' : rateText(r), -1);
    } else {
      const times = (factor) => '× ' + digits(factor) + ' of the fitted';
      costSlider('latency' + place, level, LATENCY, 0.01, 100, times, 1);
      costSlider('bandwidth' + place, level, BYTE, 0.01, 100, times, -1);
    }
    slider('ranks', 0, layouts.length - 1, 1, () => state.layout,
        (value) => { state.layout = Math.round(value); }, () => String(ranksOf(state.layout)));
    slider('bytes', Math.log2(LOW), Math.log2(HIGH), 0.25, () => Math.log2(state.bytes),
        (value) => { state.bytes = 4 * Math.max(1, Math.round(Math.pow(2, value) / 4)); }, () => sizeText(state.bytes));
    const back = document.createElement('button');
    back.type = 'button';
    back.textContent = 'Back to the start';
    back.addEventListener('click', () => { state = started(); redraw(); });
    byId('sliders').appendChild(back);
  };

  // Plots. The frame is that of svg_frame.h, with a ribbon above it that says who is the fastest.
  const WIDTH = 480, LEFT = 56, RIGHT = 354, TOP = 16, BOTTOM = 228, ABOVE = 34;
  const part = (value, low, high) => Math.log(value / low) / Math.log(high / low);

  const spread = (wanted, gap, low, high) => {
    const at = [...wanted];
    for (let i = 1; i < at.length; ++i) at[i] = Math.max(at[i], at[i - 1] + gap);
    let most = high;
    for (let i = at.length - 1; i >= 0; --i, most -= gap) at[i] = Math.min(at[i], most);
    for (let i = 0, least = low; i < at.length; ++i, least += gap) at[i] = Math.max(at[i], least);
    return at;
  };

  const runsOf = (xs, fastest) => {
    const runs = [];
    xs.forEach((x, i) => {
      const last = runs[runs.length - 1];
      if (last && last.k === fastest[i]) last.to = x;
      else runs.push({k: fastest[i], from: x, to: x});
    });
    return runs.filter((run) => run.k >= 0);
  };

  const yRange = (curves, marks) => {
    const all = [...curves.flatMap((c) => c.ys), ...marks.map((m) => m.y)].filter((y) => y > 0 && Number.isFinite(y));
    return [Math.pow(10, Math.floor(Math.log10(Math.min(...all)) + 1e-9)),
      Math.pow(10, Math.ceil(Math.log10(Math.max(...all)) - 1e-9))];
  };

  // plot: id, note, xs, low, high, xName, xText, ticks, curves (k, ys), runs, marks (k, x, y, ring), at
  const draw = (plot) => {
    const figure = byId(plot.id), svg = figure.querySelector('svg');
    const [yLow, yHigh] = yRange(plot.curves, plot.marks);
    const px = (x) => LEFT + part(x, plot.low, plot.high) * (RIGHT - LEFT);
    const py = (y) => BOTTOM - part(y, yLow, yHigh) * (BOTTOM - TOP);
    const one = (number) => number.toFixed(1);
    let html = '';
    const decades = Math.round(Math.log10(yHigh / yLow)), every = Math.ceil(decades / 7);
    for (let d = 0; d <= decades; ++d) {
      const y = yLow * Math.pow(10, d);
      html += `<path class="mark" d="M${LEFT} ${one(py(y))}H${RIGHT}"/>`;
      if (d % every === 0) html += `<text class="y" x="${LEFT - 7}" y="${one(py(y))}">${timeText(y)}</text>`;
    }
    for (const {x, text} of plot.ticks) {
      html += `<path class="tick" d="M${one(px(x))} ${BOTTOM}v5"/><text class="x" x="${one(px(x))}" y="${BOTTOM + 18}">${text}</text>`;
    }
    html += `<path class="axis" d="M${LEFT} ${BOTTOM}H${RIGHT}"/>` +
        `<text class="x title" x="${RIGHT}" y="${BOTTOM + 36}">${plot.xName}</text>`;
    plot.runs.forEach((run, i) => {
      const end = plot.runs[i + 1] ? plot.runs[i + 1].from : plot.high;
      const from = px(i ? run.from : plot.low), width = px(end) - from, name = strategies[run.k].name;
      html += `<rect class="${color(run.k)}" x="${one(from)}" y="-8" width="${one(width)}" height="6"/>`;
      if (i) html += `<path class="cross" d="M${one(from)} -8V${BOTTOM}"/>`;
      if (width > 7.4 * name.length) html += `<text class="name ${color(run.k)} strong" x="${one(from)}" y="-18">${escaped(name)}</text>`;
    });
    html += `<path class="chosen" d="M${one(px(plot.at))} ${TOP}V${BOTTOM}"/>`;
    const ends = [];
    for (const {k, ys} of plot.curves) {
      let path = '', last = -1;
      ys.forEach((y, i) => {
        if (!Number.isFinite(y)) return;
        path += (last === i - 1 && last >= 0 ? 'L' : 'M') + one(px(plot.xs[i])) + ' ' + one(py(y));
        last = i;
      });
      if (last < 0) continue;
      const best = k === plot.best;
      html += `<g class="series ${color(k)}${best ? ' best' : ''}" data-name="${escaped(strategies[k].name)}" data-x="${plot.xs.map((x) => +x.toPrecision(6))}" ` +
          `data-y="${ys.map((y) => Number.isFinite(y) ? y.toPrecision(5) : '')}"><path d="${path}"/></g>`;
      ends.push({k, best, x: px(plot.xs[last]), y: py(ys[last])});
    }
    for (const {k, x, y, ring} of plot.marks) {
      html += `<circle class="${ring ? 'ring' : 'dot' + (moved() ? ' old' : '')} ${color(k)}" cx="${one(px(x))}" cy="${one(py(y))}" r="${ring ? 5.5 : 3.6}">` +
          `<title>${escaped(strategies[k].name)}, ${ring ? 'measured' : 'played'}: ${timeText(y)}</title></circle>`;
    }
    ends.sort((a, b) => a.y - b.y);
    const gap = innerWidth <= 760 ? 15 : 13;
    spread(ends.map((end) => end.y), gap, TOP - 4, BOTTOM + 4).forEach((y, i) => {
      const {k, best, x} = ends[i];
      html += `<path class="leader ${color(k)}" d="M${one(x + 2)} ${one(ends[i].y)}L${RIGHT + 6} ${one(y)}"/>` +
          `<text class="name ${color(k)}${best ? ' strong' : ''}" x="${RIGHT + 9}" y="${one(y)}">${escaped(strategies[k].name)}</text>`;
    });
    const cursor = svg.querySelector('.cursor');
    svg.setAttribute('viewBox', `0 ${-ABOVE} ${WIDTH} ${270 + ABOVE}`);
    svg.innerHTML = html;
    if (cursor) svg.appendChild(cursor);
    svg.dataset.box = [LEFT, RIGHT, TOP, BOTTOM].join();
    svg.dataset.xrange = [plot.low, plot.high, 1].join();
    svg.dataset.yrange = [yLow, yHigh, 1].join();
    svg.dispatchEvent(new Event('redrawn'));
    figure.querySelector('figcaption small').textContent = plot.note;
    figure.querySelector('.fastest').textContent = plot.words;
  };

  const moved = () => state.costs.some((costs, l) => costs.some((cost, i) => cost !== start.costs[l][i]));
  const marksOf = (belongs, xOf) => points.filter(belongs).flatMap((point) => {
    const k = strategies.findIndex((strategy) => strategy.name === point.strategy);
    if (k < 0) return [];
    const dot = {k, x: xOf(point), y: point.played};
    return point.measured ? [dot, {...dot, y: point.measured, ring: true}] : [dot];
  });
  const wordsOf = (runs, text) => 'Fastest: ' + runs.map((run, i) =>
    strategies[run.k].name + (i + 1 < runs.length ? ' up to ' + text(runs[i + 1].from) : '')).join(', then ') + '.';

  const sizes = [];
  for (let n = LOW; n < HIGH; n *= Math.pow(2, 1 / 8)) sizes.push(n);
  sizes.push(HIGH);
  const lowest = Math.ceil(Math.log2(LOW)), octaves = Math.log2(HIGH / LOW), apart = 2 * Math.ceil(octaves / 13);
  const sizeTicks = [];
  for (let power = lowest; power <= Math.log2(HIGH); power += apart) {
    const x = Math.pow(2, power);
    sizeTicks.push({x, text: sizeText(x).replace(' bytes', '')});
  }
  const crossing = (from, to, before) => {  // between two sizes, on the logarithm
    for (let i = 0; i < 20; ++i) {
      const middle = Math.sqrt(from * to);
      if (fastestAt(state.layout, middle) === before) from = middle; else to = middle;
    }
    return to;
  };
  const drawOverBytes = () => {
    const fastest = sizes.map((n) => fastestAt(state.layout, n));
    const runs = runsOf(sizes, fastest);
    for (let i = 1; i < runs.length; ++i) runs[i].from = crossing(runs[i - 1].to, runs[i].from, runs[i - 1].k);
    draw({
      id: 'over-bytes', note: whereText(), xs: sizes, low: LOW, high: HIGH, xName: 'bytes on each rank',
      ticks: sizeTicks,
      curves: strategies.map((strategy, k) => ({k, ys: sizes.map((n) => secondsOf(strategy, state.layout, n))})),
      runs, words: wordsOf(runs, sizeText), at: state.bytes, best: fastestAt(state.layout, state.bytes),
      marks: marksOf((point) => point.ranks === ranksOf(state.layout), (point) => point.bytes),
    });
  };
  const drawOverRanks = () => {
    const xs = layouts.map((_, k) => ranksOf(k)), low = xs[0], high = xs[xs.length - 1];
    const fastest = layouts.map((_, k) => fastestAt(k, state.bytes));
    const runs = runsOf(xs, fastest), ticks = [];
    for (let x = 1; x <= high; x *= 4) if (x >= low) ticks.push({x, text: String(x)});
    draw({
      id: 'over-ranks', note: sizeText(state.bytes) + ' on each', xs, low, high, xName: 'ranks', ticks,
      curves: strategies.map((strategy, k) => ({k, ys: layouts.map((_, l) => secondsOf(strategy, l, state.bytes))})),
      runs, words: runs.length > 6 ? 'Fastest: it changes ' + (runs.length - 1) + ' times, with the powers of two among the ranks.'
        : wordsOf(runs, (p) => (p - 1) + ' ranks'),
      at: ranksOf(state.layout), best: fastestAt(state.layout, state.bytes),
      marks: marksOf((point) => point.bytes === state.bytes, (point) => point.ranks),
    });
  };

  const drawParts = () => {
    const rows = strategies.map((strategy, k) => ({k, name: strategy.name, parts: partsOf(strategy, state.layout, state.bytes)}))
      .filter((row) => row.parts).sort((a, b) => a.parts.sum - b.parts.sum);
    const bar = (parts) => parts.map((seconds, i) => `<i class="part${i}" style="width:${(100 * seconds / parts.sum).toFixed(2)}%"></i>`).join('');
    byId('parts').innerHTML = '<ul class="legend"><li><i class="part0"></i>latency</li><li><i class="part1"></i>moving bytes</li>' +
      '<li><i class="part2"></i>adding</li></ul><table class="wide"><thead><tr><th>strategy</th><th>time</th><th class="track"></th>' +
      '<th>steps</th><th class="more">bytes moved</th><th class="more">bytes added</th></tr></thead><tbody>' + rows.map(({k, name, parts}) => {
      const [s0, b0, r0, s1, b1, r1] = parts.way;
      return `<tr data-name="${escaped(name)}" data-seconds="${parts.sum}"><td><i class="swatch ${color(k)}"></i>${escaped(name)}</td><td>${timeText(parts.sum)}</td><td class="track"><span class="made">${bar(parts)}</span></td>` +
        `<td>${digits(s0 + s1)}</td><td class="more">${sizeText((b0 + b1) * state.bytes)}</td><td class="more">${sizeText((r0 + r1) * state.bytes)}</td></tr>`;
    }).join('') + '</tbody></table><p class="note">Each bar is one strategy’s time on its longest path. Where latency is most of it, fewer steps help; where moving is, fewer bytes.</p>';
    const best = rows.slice(0, 2).map(({name, parts}, i) => (i ? '' : name + ' takes ') + (i ? name + ' ' : '') + timeText(parts.sum));
    byId('answer').textContent = `${whereText()}, ${sizeText(state.bytes)}: ${best.join(', ')}`;
  };

  const redraw = () => {
    for (const show of sliders) show();
    drawOverBytes();
    drawOverRanks();
    drawParts();
  };

  if (strategies.length === 0) return;
  for (const id of ['over-bytes', 'over-ranks']) {
    const figure = byId(id), svg = figure.querySelector('svg'), words = document.createElement('p');
    words.className = 'note fastest';
    figure.appendChild(words);
    svg.addEventListener('click', (event) => {
      const area = svg.getBoundingClientRect();
      const at = (event.clientX - area.left) * (WIDTH / area.width);
      const share = Math.min(1, Math.max(0, (at - LEFT) / (RIGHT - LEFT)));
      if (id === 'over-bytes') {
        state.bytes = 4 * Math.max(1, Math.round(LOW * Math.pow(HIGH / LOW, share) / 4));
      } else {
        const wanted = ranksOf(0) * Math.pow(ranksOf(layouts.length - 1) / ranksOf(0), share);
        const away = (k) => Math.abs(Math.log(ranksOf(k) / wanted));
        state.layout = layouts.reduce((best, _, k) => away(k) < away(best) ? k : best, 0);
      }
      redraw();
    });
  }
  for (const id of ['sliders', 'pointed', 'parts-title']) byId(id).hidden = false;
  makeSliders();
  const start = {costs: state.costs.map((costs) => [...costs]), layout: state.layout, bytes: state.bytes};
  const started = () => ({costs: start.costs.map((costs) => [...costs]), layout: start.layout, bytes: start.bytes});
  addEventListener('resize', redraw);
  redraw();
})();
