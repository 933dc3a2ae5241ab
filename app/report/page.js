(() => {
  const box = document.getElementById('readout');
  const SVG = 'http://www.w3.org/2000/svg';
  const numbers = (text) => text.split(',').map((word) => (word === '' ? NaN : Number(word)));
  const make = (name, attributes, parent) => {
    const element = document.createElementNS(SVG, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    parent.appendChild(element);
    return element;
  };
  const place = (value, [low, high, log], begin, end) => {
    const part = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    return begin + part * (end - begin);
  };
  const nearest = (xs, ys, x, far, away) => {
    let best = -1;
    for (let i = 0; i < xs.length; ++i) {
      if (!Number.isFinite(ys[i])) continue;
      if (best < 0 || away(xs[i], x) < away(xs[best], x)) best = i;
    }
    return best >= 0 && away(xs[best], x) <= far ? best : -1;
  };
  for (const svg of document.querySelectorAll('figure.plot svg[data-box]')) {
    let left, right, top, bottom, xRange, yRange, series;
    const percent = 'percent' in svg.dataset;
    const written = (value) => (percent ? (100 * value).toPrecision(4) + ' %' : String(+value.toPrecision(4)));
    const cursor = make('g', {class: 'cursor', visibility: 'hidden'}, svg);
    const line = make('line', {}, cursor);
    let dots = [];
    const read = () => {
      [left, right, top, bottom] = numbers(svg.dataset.box);
      [xRange, yRange] = [numbers(svg.dataset.xrange), numbers(svg.dataset.yrange)];
      series = [...svg.querySelectorAll('.series[data-name]')].map((group) => ({
        name: group.dataset.name, color: getComputedStyle(group).color,
        xs: numbers(group.dataset.x), ys: numbers(group.dataset.y),
      }));
      for (const dot of dots) dot.remove();
      dots = series.map((one) => make('circle', {r: 3.5, style: 'color:' + one.color}, cursor));
      line.setAttribute('y1', top);
      line.setAttribute('y2', bottom);
    };
    read();
    svg.addEventListener('redrawn', read);
    const hide = () => { cursor.setAttribute('visibility', 'hidden'); box.hidden = true; };
    const show = (event) => {
      const area = svg.getBoundingClientRect();
      const at = (event.clientX - area.left) * (svg.viewBox.baseVal.width / area.width);
      if (at < left - 8 || at > right + 8) return hide();
      const part = Math.min(1, Math.max(0, (at - left) / (right - left)));
      const [low, high, log] = xRange;
      const away = (a, b) => Math.abs(log ? Math.log(a / b) : a - b);
      const wanted = log ? low * Math.pow(high / low, part) : low + part * (high - low);
      let x = NaN;
      for (const one of series) {
        const i = nearest(one.xs, one.ys, wanted, Infinity, away);
        if (i >= 0 && !(away(one.xs[i], wanted) >= away(x, wanted))) x = one.xs[i];
      }
      if (!Number.isFinite(x)) return hide();
      const lines = document.createDocumentFragment();
      const head = document.createElement('span');
      head.textContent = svg.dataset.xname + ' ' + (Math.abs(x) < 1e5 ? +x.toPrecision(6) : Math.round(x));
      lines.appendChild(head);
      series.forEach((one, k) => {
        const i = nearest(one.xs, one.ys, x, 0.02 * away(high, low), away);
        dots[k].setAttribute('visibility', i < 0 ? 'hidden' : 'inherit');
        if (i < 0) return;
        dots[k].setAttribute('cx', place(one.xs[i], xRange, left, right));
        dots[k].setAttribute('cy', place(one.ys[i], yRange, bottom, top));
        const row = document.createElement('div');
        const value = document.createElement('b');
        value.textContent = written(one.ys[i]);
        value.style.color = 'color-mix(in srgb, ' + one.color + ' 70%, var(--ink))';
        row.append(value, ' ' + (series.length > 1 ? one.name : ''));
        lines.appendChild(row);
      });
      const px = place(x, xRange, left, right);
      line.setAttribute('x1', px);
      line.setAttribute('x2', px);
      cursor.setAttribute('visibility', 'visible');
      box.replaceChildren(lines);
      box.hidden = false;
      const beside = event.clientX + 16 + box.offsetWidth > innerWidth ? -16 - box.offsetWidth : 16;
      box.style.left = Math.max(4, event.clientX + beside) + 'px';
      box.style.top = Math.max(4, Math.min(innerHeight - box.offsetHeight - 4, event.clientY - 20)) + 'px';
    };
    svg.addEventListener('pointermove', show);
    svg.addEventListener('pointerdown', show);
    svg.addEventListener('pointerleave', hide);
  }
  let opened = [];  // for paper alone
  addEventListener('beforeprint', () => {
    opened = [...document.querySelectorAll('details:not([open])')];
    for (const one of opened) one.open = true;
  });
  addEventListener('afterprint', () => { for (const one of opened) one.open = false; });
})();
