// Masks over images.
import {colorOf, stroke, unitOf} from "./draw.js";

// The runs of a mask in COCO's compressed form: outside, inside, outside, …, down the columns.
function runsOf(counts) {
  const runs = [];
  for (let at = 0; at < counts.length;) {
    let value = 0, shift = 0, more = true;
    while (more) {
      const code = counts.charCodeAt(at++) - 48;
      value |= (code & 31) << shift;
      shift += 5;
      more = (code & 32) !== 0;
      if (!more && (code & 16)) value |= -1 << shift;
    }
    runs.push(runs.length > 2 ? value + runs[runs.length - 2] : value);
  }
  return runs;
}

// Masks {size: [height, width], counts} as an image, each in the colour of its index; later ones are above earlier
// ones.
export function layerOf(masks, color = colorOf) {
  const [height, width] = masks[0].size;
  const layer = new OffscreenCanvas(width, height), pixels = new ImageData(width, height);
  masks.forEach((mask, i) => {
    const [r, g, b] = color(i);
    let at = 0, inside = false;
    for (const run of runsOf(mask.counts)) {
      for (const end = at + run; at < end; ++at) {
        if (!inside) continue;
        const pixel = 4 * (at % height * width + Math.floor(at / height));
        pixels.data[pixel] = r;
        pixels.data[pixel + 1] = g;
        pixels.data[pixel + 2] = b;
        pixels.data[pixel + 3] = 255;
      }
      inside = !inside;
    }
  });
  layer.getContext("2d").putImageData(pixels, 0, 0);
  return layer;
}

export function drawLayer(context, layer, opacity = 0.5) {
  context.save();
  context.globalAlpha = opacity;
  context.drawImage(layer, 0, 0);
  context.restore();
}

// The marks of a prompt: a plus in the object, a minus outside it, and a box.
export function drawPrompt(context, {points, box}) {
  const unit = unitOf(context);
  for (const [x, y, label] of points) {
    const dot = new Path2D(), sign = new Path2D();
    dot.arc(x, y, 9 * unit, 0, 2 * Math.PI);
    context.fillStyle = label === 0 ? "#c62828" : "#1b7f3b";
    context.fill(dot);
    stroke(context, dot);
    sign.rect(x - 5 * unit, y - unit, 10 * unit, 2 * unit);
    if (label !== 0) sign.rect(x - unit, y - 5 * unit, 2 * unit, 10 * unit);
    context.fillStyle = "white";
    context.fill(sign);
  }
  if (!box) return;
  const edges = new Path2D();
  edges.rect(box[0], box[1], box[2] - box[0], box[3] - box[1]);
  stroke(context, edges);
}
