#include "app/report/page.h"

namespace ringlet::app::report {

// Colours are Okabe's and Ito's, which people with any kind of colour vision tell apart; on black
// they are a little lighter, and their yellow, too faint on white, is an ochre.
const char* const kPageStyle = R"css(
:root {
  --paper: #fff; --ink: #1b2430; --soft: #5b6675; --line: #e2e6eb; --wash: #f5f7f9;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #b0569b; --c4: #c98a00; --c5: #3c9fd8;
  --c6: #8a6d3b; --c7: #8d98a4; --heat: 0, 114, 178; --bad: #b3261e;
}
@media (prefers-color-scheme: dark) { :root {
  --paper: #12161b; --ink: #e6eaef; --soft: #9aa5b1; --line: #2b323a; --wash: #1a2027;
  --c0: #4aa8e0; --c1: #f0843e; --c2: #35c294; --c3: #d991c4; --c4: #e8b33c; --c5: #8cccf2;
  --c6: #c2a672; --c7: #73808d; --heat: 74, 168, 224; --bad: #ff8a80;
} }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 1140px; margin: 0 auto; padding: 40px 24px 64px; }
h1 { font-size: 30px; line-height: 1.2; font-weight: 650; letter-spacing: -.01em; margin: 4px 0 8px;
  text-wrap: balance; }
h1.more { font-size: 22px; }
h2 { font-size: 20px; font-weight: 650; margin: 52px 0 16px; padding-top: 18px;
  border-top: 1px solid var(--line); }
summary { cursor: pointer; color: var(--soft); font-size: 14.5px; margin: 14px 0; }
h3 { font-size: 16px; font-weight: 600; margin: 28px 0 10px; }
p { margin: 0 0 12px; }
.kicker { color: var(--soft); font-size: 14px; margin: 0; }
.lede { color: var(--soft); max-width: 92ch; }
.note { color: var(--soft); font-size: 14.5px; max-width: 76ch; }
.warning { border-left: 3px solid var(--c4); padding: 2px 0 2px 12px; font-size: 14.5px; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 18px 24px;
  margin: 26px 0 0; }
.facts dt { color: var(--soft); font-size: 13.5px; }
.facts dd { margin: 0; font-size: 24px; font-weight: 600; letter-spacing: -.01em;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
.facts dd small { font-size: 14px; font-weight: 400; color: var(--soft); letter-spacing: 0; }
.grid { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 36px 32px; }
.multiples { grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 26px 28px; margin-bottom: 28px; }
.multiples svg text { font-size: 15px; }
.multiples figcaption small { display: block; margin: 0; }
figure { margin: 0; min-width: 0; }
figure.plot { display: flex; flex-direction: column; }
figure.plot svg { margin-top: auto; }
figcaption { font-weight: 600; font-size: 15px; margin-bottom: 2px; }
figcaption small { font-weight: 400; color: var(--soft); font-size: 13px; margin-left: 4px; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 16px; padding: 0; margin: 2px 0 4px;
  font-size: 13.5px; color: var(--soft); }
.legend i, .swatch { display: inline-block; width: 16px; height: 0; margin-right: 7px;
  vertical-align: middle; border-top: 3px solid currentColor; }
.legend i.dashed { border-top-style: dashed; border-top-width: 2px; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { font-size: 11.5px; fill: var(--soft); font-variant-numeric: tabular-nums; }
svg text.x { text-anchor: middle; } svg text.x.title { text-anchor: end; }
svg text.y { text-anchor: end; dominant-baseline: central; }
svg .mark { stroke: var(--line); stroke-width: 1; fill: none; }
svg .axis, svg .tick { stroke: var(--soft); stroke-width: 1; fill: none; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); } .c3 { color: var(--c3); }
.c4 { color: var(--c4); } .c5 { color: var(--c5); } .c6 { color: var(--c6); } .c7 { color: var(--c7); }
.series path { fill: none; stroke: currentColor; stroke-width: 1.8; stroke-linejoin: round;
  stroke-linecap: round; }
.series.faint path { stroke-width: .8; opacity: .28; }
.series.dashed path { stroke-dasharray: 5 4; stroke-width: 1.6; }
.series.c7 path { stroke-width: 1.2; }
.series circle { fill: currentColor; stroke: none; }
.series.c7 circle { r: 1.9px; }
.band { fill: currentColor; fill-opacity: .14; stroke: currentColor; stroke-opacity: .3; stroke-width: .6; }
svg text.name { dominant-baseline: central; }
svg text.name.strong { fill: currentColor; font-weight: 600; }
.multiples .series path { stroke-width: 2; }
.multiples .series circle { r: 4px; }
.leader { fill: none; stroke: currentColor; stroke-width: .7; opacity: .6; }
svg rect[class] { fill: currentColor; }
.cursor line { stroke: var(--soft); stroke-width: 1; }
.cursor circle { fill: var(--paper); stroke: currentColor; stroke-width: 2; }
.nothing { color: var(--soft); font-size: 14px; border: 1px dashed var(--line); padding: 32px 12px;
  text-align: center; }
#readout { position: fixed; z-index: 9; pointer-events: none; background: var(--paper); color: var(--ink);
  border: 1px solid var(--line); border-radius: 5px; padding: 5px 9px; font-size: 13px; line-height: 1.4;
  box-shadow: 0 2px 10px rgba(0, 0, 0, .16); font-variant-numeric: tabular-nums; white-space: nowrap; }
#readout b { font-weight: 600; }
#readout span { color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14.5px; font-variant-numeric: tabular-nums; }
th { text-align: right; font-weight: 500; color: var(--soft); padding: 5px 12px 5px 0; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
td { text-align: right; padding: 5px 12px 5px 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
td.changed { font-weight: 600; }
table.wide { width: 100%; }
.side { display: grid; grid-template-columns: minmax(0, 5fr) minmax(0, 4fr); gap: 32px; align-items: start; }
.side figcaption { margin-bottom: 8px; }
svg.confusion text { font-size: 11px; }
svg.confusion .cell { fill: rgb(var(--heat)); }
svg.confusion .n { text-anchor: middle; dominant-baseline: central; fill: var(--ink); }
svg.confusion .n.strong { fill: var(--paper); font-weight: 600; }
svg.confusion .row { text-anchor: end; dominant-baseline: central; }
svg.confusion .frame { fill: none; stroke: var(--line); }
.bar { display: inline-block; height: 9px; background: var(--c0); border-radius: 1px; vertical-align: middle; }
td.track { width: 40%; text-align: left; }
.mistakes { display: grid; grid-template-columns: repeat(auto-fill, minmax(118px, 1fr)); gap: 20px 14px; }
.mistakes img { width: 92px; height: 92px; object-fit: contain; image-rendering: pixelated; background: #000;
  display: block; border-radius: 3px; }
.mistakes figcaption { font-weight: 400; font-size: 13px; line-height: 1.35; margin-top: 6px; }
.mistakes .said { color: var(--bad); font-weight: 600; } .mistakes .is { color: var(--soft); }
pre { background: var(--wash); border-radius: 5px; padding: 14px 16px; overflow-x: auto;
  font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; margin: 0; }
.pairs { display: grid; grid-template-columns: max-content 1fr; gap: 4px 20px; margin: 0; font-size: 14.5px; }
.pairs dt { color: var(--soft); } .pairs dd { margin: 0; overflow-wrap: anywhere; }
footer { margin-top: 56px; color: var(--soft); font-size: 13px; border-top: 1px solid var(--line);
  padding-top: 14px; }
@media (max-width: 760px) {
  main { padding: 24px 16px 48px; }
  h1 { font-size: 25px; }
  .grid, .side { grid-template-columns: minmax(0, 1fr); gap: 30px; }
  .facts { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .facts dd { font-size: 21px; }
  svg text { font-size: 15px; }
  svg text.name { font-size: 13.5px; }
  svg.confusion text { font-size: 14px; }
  td.track, th.track { display: none; }
  .mistakes { grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 16px 10px; }
  .mistakes img { width: 100%; height: auto; aspect-ratio: 1; }
}
@media print {
  :root { --paper: #fff; --ink: #111; --soft: #4a525c; --line: #d5dae0; --wash: #f5f7f9;
    --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #b0569b; --c4: #c98a00; --c5: #3c9fd8;
    --c6: #8a6d3b; --c7: #8d98a4; --heat: 0, 114, 178; --bad: #b3261e; }
  @page { margin: 12mm 13mm; }
  body { font-size: 11pt; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  main { padding: 0; max-width: none; }
  h1 { font-size: 20pt; } h2 { font-size: 14pt; margin-top: 22px; padding-top: 10px; }
  h2, h3, .note, .plot figcaption, .legend { break-after: avoid; }
  figure, tr, .pairs, .facts { break-inside: avoid; }
  .grid, .side { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 10px 20px; }
  .multiples { grid-template-columns: repeat(3, minmax(0, 1fr)); }
  .facts { grid-template-columns: repeat(6, 1fr); gap: 8px; margin-top: 14px; }
  .facts dd { font-size: 13pt; } .facts dt { font-size: 9pt; }
  .mistakes { grid-template-columns: repeat(8, 1fr); gap: 10px; }
  .mistakes img { width: 100%; height: auto; }
  .mistakes figcaption { font-size: 7.5pt; }
  figcaption { font-size: 9.5pt; } figcaption small, .legend { font-size: 8pt; } .legend { margin: 0; }
  footer { margin-top: 14px; }
  table { font-size: 9.5pt; } th, td { padding: 2px 8px 2px 0; }
  pre { white-space: pre-wrap; font-size: 8.5pt; }
  #readout { display: none; }
}
)css";

}  // namespace ringlet::app::report
