// Views of maps at the image's size, which the server draws: depth, segments with classes, distances from good images.
import {pictureOf} from "./api.js";
import {divided, kInferno} from "./draw.js";
import {element, factsTable, percent, slider} from "./elements.js";
import {cards, pairs} from "./gallery.js";
import {Results} from "./results.js";

const kSide = 1400;  // pixels of a kept map, at most
const kKept = 32;    // maps

// The map as large as the stage shows it.
async function reduced(file) {
  const whole = await createImageBitmap(file), scale = Math.min(1, kSide / Math.max(whole.width, whole.height));
  if (scale === 1) return whole;
  const resizeWidth = Math.ceil(whole.width * scale);
  whole.close();
  return createImageBitmap(file, {resizeWidth, resizeQuality: "high"});
}

// The maps that the server draws, without the image below them.
class Maps {
  constructor(path) { Object.assign(this, {path, known: new Map()}); }

  async of({model, exif}, image, signal) {
    const key = JSON.stringify([image.id, model.id, exif]);
    if (!this.known.has(key)) {
      if (this.known.size >= kKept) this.known.clear();
      this.known.set(key, await reduced(await pictureOf(this.path, {model: model.id, opacity: 1, exif}, image.file,
        signal)));
    }
    return this.known.get(key);
  }
}

// What the views do.  describe(result) gives what Stage.legend() takes; body(result) is an element with the result;
// paint(context, map, size) draws the map over the image.
const view = (task, methods) => ({
  suits: (model) => model.tasks.includes(task),
  maps: new Maps(`v1/${task}`),
  results: new Results(`v1/${task}`),
  async show(state, signal) {
    const all = pairs(state, state.images, await this.results.of(state, state.images, {}, signal));
    const {image, result} = all.find((pair) => pair.image === state.current);
    if (!result.error) {
      const map = await this.maps.of(state, image, signal);
      const size = state.stage.fit({width: map.width, height: map.height});
      state.stage.draw((context) => this.paint(context, map, size));
      state.stage.legend(...this.describe(result));
    }
    state.result.replaceChildren(...cards(state, all, (each) => this.body(each)));
  },
  ...methods,
});

const number = (value) => Number(value.toPrecision(3)).toString();

// The map is right of a divider, the image left of it.
export const depth = view("depth", {
  name: "Depth",
  help: "Move the divider, or click the image where it shall be: the image is left of it, its depth right of it.",
  options(state) {
    this.state = state;
    this.divider = slider("Divider", {max: 1, step: 0.01, value: 0, shown: percent}, state.show);
    return [this.divider.field];
  },
  pick(x) {
    this.divider.set(x / this.state.stage.width);
    this.state.show();
  },
  paint(context, map, size) {
    divided(context, Number(this.divider.input.value), size,
      () => context.drawImage(map, 0, 0, size.width, size.height));
  },
  describe: ({min, max, unit}) =>
    [unit === "m" ? "Depth in metres" : "Inverse depth without a unit: the larger, the nearer", [min, max], kInferno],
  body: ({min, max, unit}) => {
    const of = unit === "m" ? " m" : "";
    return factsTable({"smallest value": number(min) + of, "largest value": number(max) + of});
  },
});

// The map over the image, as opaque as the user wants.
const blended = {
  options(state) {
    this.opacity = slider("Opacity", {max: 1, step: 0.05, value: 0.6}, state.show);
    return [this.opacity.field];
  },
  paint(context, map, {width, height}) {
    context.save();
    context.globalAlpha = Number(this.opacity.input.value);
    context.drawImage(map, 0, 0, width, height);
    context.restore();
  },
};

function swatch(color) {
  const square = element("span", {class: "swatch"});
  square.style.setProperty("--color", `rgb(${color.join(" ")})`);
  return square;
}

export const segments = view("segment", {
  name: "Segments",
  suits: (model) => model.tasks.includes("segment") && !model.segments && model.classes > 0,
  ...blended,
  describe: ({segments: {length}}) => [length === 1 ? "1 segment" : `${length} segments`],
  // The legend: the largest segments first.
  body: ({shape: [height, width], segments: all}) => element("ul", {class: "swatches"},
    ...all.toSorted((a, b) => b.area - a.area).map(({label, color, score, area}) => element("li", {},
      swatch(color), element("span", {}, label),
      element("span", {}, percent(area / (width * height)) + (score === undefined ? "" : `, score ${number(score)}`))))),
});

export const anomalies = view("anomaly", {
  name: "Anomalies",
  ...blended,
  describe: ({anomalous}) => ["Distances of patches from those of good images" +
    (anomalous === undefined ? "" : anomalous ? ": an anomaly" : ": no anomaly")],
  body: ({score, threshold, anomalous, distance, farthest}) => factsTable({
    "score": number(score),
    ...(threshold === undefined ? {} : {"threshold": number(threshold), "anomaly": anomalous}),
    "largest distance": `${number(distance)}, at ${farthest.join(", ")}`,
  }),
});
