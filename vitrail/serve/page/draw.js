// Images and maps on canvases.  A context that drawImage() returns counts in pixels of the image.

// Points of colour maps, dark to light: that of the page, and that of the server's pictures.
const kViridis = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
export const kInferno = [[0, 0, 4], [87, 16, 110], [188, 55, 84], [249, 142, 9], [252, 255, 164]];

function valueColor(value, points) {
  const at = Math.min(Math.max(value, 0), 1) * (points.length - 1);
  const low = Math.min(Math.floor(at), points.length - 2);
  return points[low].map((from, i) => from + (points[low + 1][i] - from) * (at - low));
}

// Hues that differ as much as possible from those before them: the golden angle.
export function colorOf(i) {
  const hue = (210 + 137.508 * i) % 360 / 60, part = 1 - Math.abs(hue % 2 - 1);
  const sectors = [[1, part, 0], [part, 1, 0], [0, 1, part], [0, part, 1], [part, 0, 1], [1, 0, part]];
  const [r, g, b] = sectors[Math.floor(hue)];
  return [r, g, b].map((value) => 40 + 200 * value);
}

const kShown = 700;  // pixels of the screen, before a canvas is in the page

// Draws the image on a canvas whose longer side gets `side` pixels.  bitmap: null if the browser cannot show it.
export function drawImage(canvas, bitmap, width, height, side) {
  const scale = side / Math.max(width, height);
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  const context = canvas.getContext("2d");
  context.scale(canvas.width / width, canvas.height / height);
  context.imageSmoothingEnabled = scale < 4;  // the pixels of a tiny image are to be seen
  context.imageSmoothingQuality = "high";
  if (bitmap) context.drawImage(bitmap, 0, 0, width, height);
  return context;
}

// How many pixels of the image a pixel of the screen has.
export const unitOf = (context) =>
  context.canvas.width / (context.canvas.clientWidth || kShown) / context.getTransform().a;

function bitmapOf([rows, columns], colors) {
  const small = new OffscreenCanvas(columns, rows), pixels = new ImageData(columns, rows);
  for (let i = 0; i < rows * columns; ++i) {
    for (let c = 0; c < 3; ++c) pixels.data[4 * i + c] = colors[3 * i + c];
    pixels.data[4 * i + 3] = 255;
  }
  small.getContext("2d").putImageData(pixels, 0, 0);
  return small;
}

// Colours [rows, columns, 3] from 0 to 255 over the part of the image that the model sees, smoothly enlarged.
export function drawColors(context, region, shape, colors, opacity) {
  context.save();
  context.imageSmoothingEnabled = true;
  context.globalAlpha = opacity;
  context.drawImage(bitmapOf(shape, colors), region.left, region.top, region.right - region.left,
    region.bottom - region.top);
  context.restore();
}

export function rangeOf(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return [low, high];
}

export function heat(values, [low, high], points = kViridis) {
  const colors = [];
  for (const value of values) colors.push(...valueColor(high > low ? (value - low) / (high - low) : 0, points));
  return colors;
}

// A map alone, a pixel for each patch.
export function drawMap(canvas, [rows, columns], values, points = kViridis) {
  canvas.width = columns;
  canvas.height = rows;
  canvas.getContext("2d").drawImage(bitmapOf([rows, columns], heat(values, rangeOf(values), points)), 0, 0);
}

// The colours of a map, from the lowest to the highest value.
export function drawScale(canvas, points) {
  drawMap(canvas, [1, 64], Array.from({length: 64}, (_, i) => i), points);
}

// Draws a path so that it is seen on light and dark images.
export function stroke(context, path) {
  for (const [color, width] of [["black", 4], ["white", 2]]) {
    context.strokeStyle = color;
    context.lineWidth = width * unitOf(context);
    context.stroke(path);
  }
}

// What `draw` draws right of a divider; `at` is its place from 0 to 1.
export function divided(context, at, {width, height}, draw) {
  const line = new Path2D(), right = new Path2D();
  right.rect(at * width, 0, (1 - at) * width, height);
  context.save();
  context.clip(right);
  draw();
  context.restore();
  if (at === 0 || at === 1) return;
  line.moveTo(at * width, 0);
  line.lineTo(at * width, height);
  stroke(context, line);
}

// What is seen through transparent pixels.
export function drawCheckerboard(context, width, height) {
  const square = 10 * unitOf(context);
  context.fillStyle = "white";
  context.fillRect(0, 0, width, height);
  context.fillStyle = "#ccc";
  for (let y = 0; y * square < height; ++y) {
    for (let x = y % 2; x * square < width; x += 2) context.fillRect(x * square, y * square, square, square);
  }
}

// A ring around a pixel.
export function drawRing(context, [x, y]) {
  const ring = new Path2D();
  ring.arc(x, y, 9 * unitOf(context), 0, 2 * Math.PI);
  stroke(context, ring);
}

// The cross that arrow keys move.
export function drawCross(context, [x, y]) {
  const arm = 14 * unitOf(context), cross = new Path2D();
  cross.moveTo(x - arm, y);
  cross.lineTo(x + arm, y);
  cross.moveTo(x, y - arm);
  cross.lineTo(x, y + arm);
  stroke(context, cross);
}
