// Masks over the image.

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

// Hues that differ as much as possible from those before them: the golden angle.
function color(i) {
  const hue = (210 + 137.508 * i) % 360 / 60, part = 1 - Math.abs(hue % 2 - 1);
  const [r, g, b] = [[1, part, 0], [part, 1, 0], [0, 1, part], [0, part, 1], [part, 0, 1], [1, 0, part]][Math.floor(hue)];
  return [r, g, b].map((value) => 40 + 200 * value);
}

// Draws masks {size: [height, width], counts}, each in its own colour; later ones are above earlier ones.
export function drawMasks(canvas, masks, opacity) {
  if (!masks.length) return;
  const [height, width] = masks[0].size;
  const layer = new OffscreenCanvas(width, height), pixels = new ImageData(width, height);
  masks.forEach((mask, i) => {
    const rgba = [...color(i), 255 * opacity];
    let at = 0, inside = false;
    for (const run of runsOf(mask.counts)) {
      for (const end = at + run; at < end; ++at) {
        if (inside) pixels.data.set(rgba, 4 * (at % height * width + Math.floor(at / height)));
      }
      inside = !inside;
    }
  });
  layer.getContext("2d").putImageData(pixels, 0, 0);
  canvas.getContext("2d").drawImage(layer, 0, 0);
}

// The marks of a prompt: dots in the object and outside it, a box, and the cursor of the keyboard.
export function drawPrompt(canvas, points, box, cursor) {
  const context = canvas.getContext("2d"), unit = Math.max(1, canvas.width / 600);
  const stroke = (path) => {
    for (const [style, width] of [["black", 4], ["white", 2]]) {
      context.strokeStyle = style;
      context.lineWidth = width * unit;
      context.stroke(path);
    }
  };
  for (const [x, y, label] of points) {
    const dot = new Path2D();
    dot.arc(x, y, 6 * unit, 0, 2 * Math.PI);
    context.fillStyle = label === 0 ? "#d33" : "#2a4";
    context.fill(dot);
    stroke(dot);
  }
  if (box.length === 4) {
    const edges = new Path2D();
    edges.rect(box[0], box[1], box[2] - box[0], box[3] - box[1]);
    stroke(edges);
  }
  if (!cursor) return;
  const cross = new Path2D();
  cross.moveTo(cursor[0] - 12 * unit, cursor[1]);
  cross.lineTo(cursor[0] + 12 * unit, cursor[1]);
  cross.moveTo(cursor[0], cursor[1] - 12 * unit);
  cross.lineTo(cursor[0], cursor[1] + 12 * unit);
  stroke(cross);
}
