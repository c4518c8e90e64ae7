// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/report/html_internal.h"

namespace vitrail::train {

// Colours are CSS variables that follow the reader's light or dark setting.
const char* const kReportStyle = R"css(
:root { color-scheme: light dark; --page:#f7f7f5; --card:#ffffff; --ink:#1c1f23; --soft:#686f78; --line:#e2e3e0;
  --c0:#2563c9; --c1:#d9622b; --c2:#0d9373; --c3:#9b4fc4; --heat:37,99,201; --bad:#b3261e; }
@media (prefers-color-scheme: dark) { :root { --page:#14171b; --card:#1d2126; --ink:#e8eaed; --soft:#9aa2ac;
  --line:#30363d; --c0:#6ea8ff; --c1:#ff9a62; --c2:#4fd0ae; --c3:#cf9bf0; --heat:110,168,255; --bad:#ff8a80; } }
* { box-sizing:border-box; }
body { margin:0; background:var(--page); color:var(--ink);
  font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif; }
main { max-width:1080px; margin:0 auto; padding:32px 20px 64px; }
h1 { font-size:26px; margin:0 0 4px; letter-spacing:-.01em; }
h2 { font-size:17px; margin:40px 0 12px; }
p.sub { color:var(--soft); margin:0 0 24px; }
.facts { display:grid; grid-auto-flow:column; grid-auto-columns:minmax(0,1fr); gap:12px; }
.facts:has(:nth-child(6)) { grid-template-rows:auto auto; }
.facts:has(:nth-child(6)) .fact:first-child:nth-last-child(odd) { grid-row:span 2; }
.fact, .card { background:var(--card); border:1px solid var(--line); border-radius:10px; padding:12px 16px; }
.fact b { display:block; font-size:21px; font-weight:600; font-variant-numeric:tabular-nums; }
.fact span { color:var(--soft); font-size:13px; }
.charts { display:grid; grid-template-columns:repeat(auto-fit,minmax(min(430px,100%),1fr)); gap:16px; }
.card h3 { font-size:14px; margin:0 0 6px; font-weight:600; }
svg { width:100%; height:auto; display:block; }
svg text { fill:var(--soft); font-size:12px; font-family:inherit; font-variant-numeric:tabular-nums; }
svg .grid { stroke:var(--line); stroke-width:1; }
svg .smooth { fill:none; stroke-width:7; stroke-opacity:.3; stroke-linejoin:round; stroke-linecap:round; }
svg .curve { fill:none; stroke-width:2; stroke-linejoin:round; stroke-linecap:round; }
svg .dashed { stroke-dasharray:6 5; }
.s0 { stroke:var(--c0); } .s1 { stroke:var(--c1); } .s2 { stroke:var(--c2); } .s3 { stroke:var(--c3); }
.f0 { fill:var(--c0); } .f1 { fill:var(--c1); } .f2 { fill:var(--c2); } .f3 { fill:var(--c3); }
.legend { display:flex; flex-wrap:wrap; gap:4px 16px; font-size:13px; color:var(--soft); }
.legend i { display:inline-block; width:12px; height:3px; border-radius:2px; margin-right:6px; vertical-align:middle; }
.b0 { background:var(--c0); } .b1 { background:var(--c1); } .b2 { background:var(--c2); } .b3 { background:var(--c3); }
.card p.note { color:var(--soft); font-size:13px; margin:8px 0 0; }
.scroll { overflow-x:auto; }
table.confusion { border-collapse:separate; border-spacing:2px; font-size:12.5px; font-variant-numeric:tabular-nums; }
table.confusion th { font-weight:500; color:var(--soft); text-align:right; padding:2px 8px; white-space:nowrap; }
table.confusion thead th { writing-mode:vertical-rl; transform:rotate(180deg); text-align:left; padding:8px 2px; }
table.confusion td { width:44px; height:30px; text-align:center; border-radius:4px; }
table.confusion td.zero { color:var(--line); }
table.classes, table.environment { border-collapse:collapse; font-size:14px; font-variant-numeric:tabular-nums; }
table.classes th { font-weight:500; color:var(--soft); }
table.classes th, table.classes td { text-align:right; padding:3px 12px; border-bottom:1px solid var(--line); }
table.classes td.bar { width:160px; min-width:80px; padding-right:0; }
.bar i { display:block; height:8px; border-radius:4px; background:var(--c0); }
table.classes td:first-child, table.classes th:first-child { text-align:left; padding-left:0; }
table.environment { margin-top:16px; color:var(--soft); font-size:13px; }
table.environment td { padding:2px 16px 2px 0; overflow-wrap:anywhere; }
.images { display:flex; flex-wrap:wrap; gap:8px; }
.images img { height:120px; border-radius:6px; }
.images img.small { image-rendering:pixelated; }
.misclassified { display:grid; grid-template-columns:repeat(auto-fill,minmax(150px,1fr)); gap:14px; }
figure { margin:0; background:var(--card); border:1px solid var(--line); border-radius:10px; overflow:hidden; }
figure img { width:100%; aspect-ratio:1; object-fit:contain; display:block; background:var(--line); }
figure img.small { image-rendering:pixelated; }
figcaption { padding:8px 10px 10px; font-size:13px; line-height:1.35; overflow-wrap:anywhere; }
figcaption .wrong { color:var(--bad); font-weight:600; }
figcaption small { color:var(--soft); display:block; }
details { background:var(--card); border:1px solid var(--line); border-radius:10px; padding:10px 16px;
  margin-top:40px; }
summary { cursor:pointer; font-weight:600; }
pre { overflow-x:auto; font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,monospace; }
ol.pairs { columns:2; font-size:14px; }
@media (max-width: 640px) {
  main { padding:20px 16px 48px; }
  .facts, .facts:has(:nth-child(6)) { grid-auto-flow:row; grid-template:none / repeat(2,minmax(0,1fr)); }
  .facts .fact:first-child:nth-last-child(odd) { grid-row:auto !important; grid-column:span 2; }
  ol.pairs { columns:1; }
}
)css";

}  // namespace vitrail::train
