// SPDX-License-Identifier: Apache-2.0
// Heat maps and charts.  A canvas has a summary for screen readers and a table of its numbers.
const sequential = [[20, 20, 40], [59, 28, 102], [125, 41, 120], [195, 65, 104], [241, 114, 81], [253, 186, 108],
  [252, 245, 190]];
const diverging = [[33, 82, 168], [118, 164, 218], [242, 242, 242], [233, 146, 112], [170, 40, 40]];

function colorOf(stops, share) {
  if (Number.isNaN(share)) return [128, 128, 128];
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2);
  return stops[i].map((from, c) => Math.round(from + (stops[i + 1][c] - from) * (at - i)));
}

function rangeOf(values) {
  let min = Infinity, max = -Infinity;
  for (const value of values) {
    if (value < min) min = value;
    if (value > max) max = value;
  }
  return Number.isFinite(min) ? [min, max] : [0, 0];
}

// An image as the model sees it, drawn once.
const inputCanvas = (() => {
  const drawn = new Map();
  return (index = 0) => {
    if (drawn.has(index)) return drawn.get(index);
    const all = array(["training.images", "frame", "images"].find(has)), [, , height, width] = all.shape;
    const pixels = height * width, values = all.values.subarray(index * all.shape[1] * pixels);
    const canvas = element("canvas", {width: String(width), height: String(height)});
    const image = new ImageData(width, height), {mean, std} = manifest.image;
    for (let i = 0; i < pixels; i += 1) {
      for (let c = 0; c < 3; c += 1) {
        const from = Math.min(c, model.channels - 1), of = (list) => list[Math.min(from, list.length - 1)];
        image.data[4 * i + c] = Math.round(255 * (values[from * pixels + i] * of(std) + of(mean)));
      }
      image.data[4 * i + 3] = 255;
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
    drawn.set(index, canvas);
    return canvas;
  };
})();

function paintCells(values, rows, columns, {signed = false, range = rangeOf(values)} = {}) {
  const canvas = element("canvas", {width: String(columns), height: String(rows)}), image = new ImageData(columns, rows);
  const limit = Math.max(Math.abs(range[0]), Math.abs(range[1])) || 1, span = range[1] - range[0] || 1;
  for (let i = 0; i < rows * columns; i += 1) {
    const share = signed ? (values[i] / limit + 1) / 2 : (values[i] - range[0]) / span;
    image.data.set([...colorOf(signed ? diverging : sequential, share), 255], 4 * i);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

function legend([min, max], signed) {
  const limit = Math.max(Math.abs(min), Math.abs(max)), [from, to] = signed ? [-limit, limit] : [min, max];
  const precise = (value) => (value === 0 || Math.abs(value) >= 1e-3 ? String(Number(value.toPrecision(3))) : shown(value));
  return element("div", {class: "legend"}, element("span", {}, precise(from)),
    element("span", {class: signed ? "scale signed" : "scale", "aria-hidden": "true"}), element("span", {}, precise(to)));
}

// The table of a map, made when it is opened.  rowName, columnName: the names of an index.
function numbersOf(values, rows, columns, {rowName = String, columnName = String} = {}) {
  const holder = element("details", {class: "numbers"}, element("summary", {}, text("numbers")));
  holder.addEventListener("toggle", () => {
    if (!holder.open || holder.children.length > 1) return;
    const line = (r) => element("tr", {}, element("th", {scope: "row"}, rowName(r)),
      Array.from({length: columns}, (_, c) => element("td", {}, plain(values[r * columns + c], 3))));
    holder.append(element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": text("numbers")},
      element("table", {}, element("thead", {}, element("tr", {}, element("td"),
        Array.from({length: columns}, (_, c) => element("th", {scope: "col"}, columnName(c))))),
      element("tbody", {}, Array.from({length: rows}, (_, r) => line(r))))));
  });
  return holder;
}

const argmax = (values) => values.reduce((best, value, i) => (value > values[best] ? i : best), 0);

// A summary in words: the range, and where the maximum is.
function summaryOf(title, values) {
  const [min, max] = rangeOf(values), at = argmax(values);
  return text("map.summary", {title, min, max, row: Math.floor(at / model.grid[1]), column: at % model.grid[1]});
}

// A map over the patches of the image.  token: the name in the state that a click and the arrow keys change.  image: the
// index of one of several.
function patchMap(title, values, {signed = false, token = "", overlay = true, small = false, image = 0} = {}) {
  const [rows, columns] = model.grid, [height, width] = model.image, scale = Math.max(1, Math.round(320 / width));
  const canvas = element("canvas", {class: small ? "map small" : "map", width: String(width * scale),
    height: String(height * scale)});
  const context = canvas.getContext("2d"), cell = [height * scale / rows, width * scale / columns];
  context.imageSmoothingEnabled = false;
  if (overlay) context.drawImage(inputCanvas(image), 0, 0, width * scale, height * scale);
  if (values) {
    context.globalAlpha = overlay ? 0.7 : 1;
    context.drawImage(paintCells(values, rows, columns, {signed}), 0, 0, width * scale, height * scale);
    context.globalAlpha = 1;
  }
  const ring = (index, color) => {
    if (index < model.prefix) return;
    const patch = index - model.prefix, line = Math.max(2, cell[1] / 7);
    context.lineWidth = line;
    context.strokeStyle = color;
    context.strokeRect(patch % columns * cell[1] + line / 2, Math.floor(patch / columns) * cell[0] + line / 2,
      cell[1] - line, cell[0] - line);
  };
  if (token) {
    ring(state[token], "#fff");
    ring(state[token], "#1b5fc1");
    movable(canvas, token, title);
  } else {
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", values ? summaryOf(title, values) : title);
  }
  return element("figure", {class: small ? "small" : ""}, element("figcaption", {}, title), canvas,
    values ? legend(rangeOf(values), signed) : null, values && !small ? numbersOf(values, rows, columns) : null);
}

// A click selects a patch, the arrow keys move it.
function movable(canvas, token, title) {
  const [rows, columns] = model.grid;
  Object.entries({tabindex: "0", role: "application", "data-moves": token,
    "aria-label": text("map.move", {title, token: tokenName(state[token])})})
    .forEach(([name, value]) => canvas.setAttribute(name, value));
  canvas.addEventListener("click", (event) => {
    const box = canvas.getBoundingClientRect();
    const r = Math.floor((event.clientY - box.top) / box.height * rows);
    const c = Math.floor((event.clientX - box.left) / box.width * columns);
    select({[token]: model.prefix + Math.min(r, rows - 1) * columns + Math.min(c, columns - 1)});
  });
  canvas.addEventListener("keydown", (event) => {
    const step = {ArrowUp: -columns, ArrowDown: columns, ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!step) return;
    event.preventDefault();
    const to = Math.max(state[token], model.prefix) + step;
    if (to >= model.prefix && to < model.tokens) select({[token]: to});
  });
}

// A matrix as a heat map with axes in words.
function matrixMap(title, values, rows, columns, {signed = false, axes = "", ...names} = {}) {
  const cells = paintCells(values, rows, columns, {signed});
  cells.className = "matrix";
  cells.setAttribute("role", "img");
  const [min, max] = rangeOf(values);
  cells.setAttribute("aria-label", text("matrix.summary", {title, min, max, rows, columns}));
  return element("figure", {class: "wide"}, element("figcaption", {}, title), cells,
    axes ? element("p", {class: "axes"}, axes) : null, legend([min, max], signed), numbersOf(values, rows, columns, names));
}

const kColors = ["#1b5fc1", "#b3261e", "#2e7d32", "#8e44ad", "#b26a00", "#00796b", "#6d4c41", "#777"];
const kDashes = ["", "6 3", "2 3", "8 3 2 3", "", "6 3", "2 3", "8 3 2 3"];

// Round values around a range, the fewest of at least three.
function roundTicks(min, max) {
  const rough = (max - min) / 3 || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough), ticks = [];
  for (let i = Math.floor(min / step); ; i += 1) {
    ticks.push(i * step);
    if (i * step >= max) return ticks;
  }
}

// The numbers of a line of a chart, made when they are opened.
function lineTable(name, {values, at}, {from, to}) {
  const place = (i) => at?.[i] ?? (Number.isFinite(from + to) ? from + (to - from) * i / Math.max(values.length - 1, 1) : i);
  const table = numbersOf(values, 1, values.length, {rowName: () => name, columnName: (i) => String(Number(place(i).toPrecision(4)))});
  if (name) table.querySelector("summary").append(`: ${typeof name === "string" ? name : name.textContent}`);
  return table;
}

// Lines over a common axis; each is told apart by its dashes, too.  Values are evenly spaced, or are at `at`, numbers
// between `from` and `to`.
function chart(title, lines, {x = "", from = 0, to = 1} = {}) {
  const [width, height, left, right, bottom] = [560, 220, 60, 14, 26], end = width - right;
  const ticks = roundTicks(...rangeOf(lines.flatMap(({values}) => [...values].filter(Number.isFinite))));
  const [min, max] = [ticks[0], ticks.at(-1)], span = max - min || 1, node = (name, attributes, content = "") => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = content;
    return made;
  };
  const svg = node("svg", {viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": text("chart.summary", {title, min, max})});
  const y = (value) => 8 + (height - bottom - 8) * (1 - (value - min) / span);
  for (const value of ticks) {
    svg.append(node("line", {x1: left, x2: end, y1: y(value), y2: y(value), class: "grid"}),
      node("text", {x: left - 6, y: y(value) + 4, "text-anchor": "end"}, String(Number(value.toPrecision(6)))));
  }
  svg.append(node("text", {x: left, y: height - 6}, String(from)),
    node("text", {x: end, y: height - 6, "text-anchor": "end"}, String(to)),
    node("text", {x: (left + end) / 2, y: height - 6, "text-anchor": "middle"}, x));
  lines.forEach(({values, at}, i) => {
    const share = (j) => (at ? (at[j] - from) / (to - from || 1) : j / Math.max(values.length - 1, 1));
    const points = [...values].map((value, j) =>
      `${left + (end - left) * share(j)},${y(Number.isFinite(value) ? value : min)}`);
    svg.append(node("polyline", {points: points.join(" "), stroke: kColors[i % 8], "stroke-dasharray": kDashes[i % 8]}));
  });
  const key = element("ul", {class: "key"}, lines.map(({name}, i) => {
    const mark = node("svg", {viewBox: "0 0 28 8", "aria-hidden": "true"});
    mark.append(node("line", {x1: 0, x2: 28, y1: 4, y2: 4, stroke: kColors[i % 8], "stroke-dasharray": kDashes[i % 8]}));
    return element("li", {}, mark, name);
  }));
  return element("figure", {class: "wide chart"}, element("figcaption", {}, title), svg, key, lines.map((line) =>
    lineTable(lines.length > 1 ? line.name : "", line, {from, to})));
}
