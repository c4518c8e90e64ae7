// Maps over the image.

// Points of the colour map viridis, dark to light.
const kViridis = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

function viridis(value) {
  const at = Math.min(Math.max(value, 0), 1) * (kViridis.length - 1);
  const low = Math.min(Math.floor(at), kViridis.length - 2);
  return kViridis[low].map((from, i) => from + (kViridis[low + 1][i] - from) * (at - low));
}

// Draws the image as large as the canvas may be.
export function drawImage(canvas, image) {
  canvas.width = image.width;
  canvas.height = image.height;
  canvas.getContext("2d").drawImage(image, 0, 0);
}

// Colours [rows, columns, 3] from 0 to 255 over the part of the image that the model sees, smoothly enlarged.
function drawColors(canvas, image, region, [rows, columns], colors, opacity) {
  const small = new OffscreenCanvas(columns, rows);
  const pixels = new ImageData(columns, rows);
  for (let i = 0; i < rows * columns; ++i) {
    for (let c = 0; c < 3; ++c) pixels.data[4 * i + c] = colors[3 * i + c];
    pixels.data[4 * i + 3] = 255;
  }
  small.getContext("2d").putImageData(pixels, 0, 0);
  drawImage(canvas, image);
  const context = canvas.getContext("2d");
  const x = image.width / region.width, y = image.height / region.height;
  context.imageSmoothingQuality = "high";
  context.globalAlpha = opacity;
  context.drawImage(small, region.left * x, region.top * y, (region.right - region.left) * x,
    (region.bottom - region.top) * y);
  context.globalAlpha = 1;
}

export function drawHeat(canvas, image, region, shape, values, opacity = 0.65) {
  const low = values.reduce((a, b) => Math.min(a, b)), high = values.reduce((a, b) => Math.max(a, b));
  const colors = values.flatMap((value) => viridis(high > low ? (value - low) / (high - low) : 0));
  drawColors(canvas, image, region, shape, colors, opacity);
  return [low, high];
}

export const drawComponents = (canvas, image, region, shape, colors, opacity) =>
  drawColors(canvas, image, region, shape, colors.map((value) => 255 * value), opacity);

// A ring around the pixel whose patch attends.
export function drawPoint(canvas, [x, y]) {
  const context = canvas.getContext("2d");
  for (const [color, width] of [["black", 4], ["white", 2]]) {
    context.strokeStyle = color;
    context.lineWidth = width * Math.max(1, canvas.width / 600);
    context.beginPath();
    context.arc(x, y, canvas.width / 60, 0, 2 * Math.PI);
    context.stroke();
  }
}
