// The view of objects: boxes with their labels, and masks, over the image.
import {Chips} from "./chips.js";
import {colorOf, unitOf} from "./draw.js";
import {element, field, percent, slider} from "./elements.js";
import {cards, pairs} from "./gallery.js";
import {drawLayer, layerOf} from "./masks.js";
import {Results} from "./results.js";

const kLowest = 0.05;  // the score of the objects that the server is asked for; the slider filters them

const readableOn = ([r, g, b]) => (0.299 * r + 0.587 * g + 0.114 * b > 140 ? "black" : "white");
const cssOf = (index) => `rgb(${colorOf(index).join(" ")})`;

// Draws the masks, then the boxes, the best one last, and each label where no better one is: above its box, inside it or below it.
function drawObjects(context, objects, {width, height}) {
  const unit = unitOf(context), size = 14 * unit, tall = size * 1.4, taken = [];
  const masked = objects.filter(({rle}) => rle).toReversed();
  if (masked.length) drawLayer(context, layerOf(masked.map(({rle}) => rle), (i) => colorOf(masked[i].index)));
  context.save();
  context.font = `600 ${size}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  context.lineWidth = 2.5 * unit;
  for (const {index, box: [x0, y0, x1, y1]} of objects.toReversed()) {
    context.strokeStyle = cssOf(index);
    context.strokeRect(x0, y0, x1 - x0, y1 - y0);
  }
  const labels = objects.map(({label, score, index, box: [x0, y0, , y1]}) => {
    const text = `${label} ${percent(score)}`, wide = context.measureText(text).width + size * 0.6;
    const left = Math.max(0, Math.min(x0, width - wide));
    const tops = [y0 - tall, y0, y1].filter((top) => top >= 0 && top + tall <= height);
    const free = (top) => taken.every((each) => left >= each.left + each.wide || each.left >= left + wide ||
      top >= each.top + tall || each.top >= top + tall);
    const top = tops.find(free) ?? Math.max(0, Math.min(tops[0] ?? y0, height - tall));
    taken.push({left, top, wide});
    return {text, index, left, top, wide};
  });
  for (const {text, index, left, top, wide} of labels.toReversed()) {
    context.fillStyle = cssOf(index);
    context.fillRect(left, top, wide, tall);
    context.fillStyle = readableOn(colorOf(index));
    context.fillText(text, left + size * 0.3, top + tall / 2);
  }
  context.restore();
}

const list = (objects) => (objects.length
  ? element("ul", {class: "swatches"}, ...objects.map(({label, score, index}) => {
    const square = element("span", {class: "swatch"});
    square.style.setProperty("--color", cssOf(index));
    return element("li", {}, square, element("span", {}, label), element("span", {}, percent(score)));
  }))
  : element("p", {}, "No object has this score."));

export const objects = {
  name: "Objects",
  suits: (model) => model.tasks.includes("detect"),
  results: new Results("v1/detect", 256),
  chips: new Chips(["cat", "cup of coffee", "rocket", "dog"]),
  options(state) {
    this.named = state.model.classes > 0;  // else labels say what to find
    this.threshold = slider("Minimum score",
      {min: kLowest, max: 1, step: 0.01, value: this.named ? 0.5 : 0.1, shown: percent}, state.show);
    this.nms = slider("Maximum overlap", {max: 1, step: 0.05, value: 1, shown: percent}, state.show);
    const segmenters = state.models.filter(({segments}) => segments);
    this.masks = element("select", {}, element("option", {value: ""}, "the detector, if it has them"),
      ...segmenters.map(({id}) => element("option", {value: id}, id)));
    return [...(this.named ? [] : [this.chips.field(state.show)]), this.threshold.field, this.nms.field,
      ...(segmenters.length ? [field("Masks are those of", this.masks, state.show)] : [])];
  },
  async show(state, signal) {
    const {labels} = this.chips, nms = this.nms.input.value;
    if (!this.named && !labels.length) throw new Error("Add a label.");
    const params = {...(this.named ? {} : {labels}), threshold: kLowest, nms: nms !== "1" && nms,
      masks: this.masks.value};
    const all = pairs(state, state.images, await this.results.of(state, state.images, params, signal));
    const shown = ({detections}) => detections.filter(({score}) => score >= Number(this.threshold.input.value));
    const paint = (context, result, size) => { if (!result.error) drawObjects(context, shown(result), size); };
    const {result} = all.find((pair) => pair.image === state.current);
    if (!result.error) {
      state.stage.draw((context) => paint(context, result, state.stage));
      const {length} = shown(result);
      state.stage.legend(length === 1 ? "1 object" : `${length} objects`);
      if (!this.named) {
        const best = (label) => Math.max(...shown(result).filter((each) => each.label === label)
          .map(({score}) => score));
        this.chips.score((label) => (best(label) > 0 ? percent(best(label)) : ""));
      }
    }
    state.result.replaceChildren(...cards(state, all, (each) => list(shown(each)),
      (context, {image, result: each}) => paint(context, each, image)));
  },
};
