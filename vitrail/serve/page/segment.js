// The view of Segment Anything: points, a box, or everything.
import {button, element, field, percent} from "./elements.js";
import {drawImage} from "./draw.js";
import {maps, pairs} from "./gallery.js";
import {downloads} from "./mask_files.js";
import {drawLayer, drawPrompt, layerOf} from "./masks.js";
import {Results} from "./results.js";

const kHelp = "Click or tap an object; drag to draw a box around it.  For what is not part of the object, click with " +
  "Shift or the right button, or tap and hold.  On the keyboard, arrow keys move a cross, Enter is a click, B a " +
  "corner of a box, Ctrl+Z undoes, Escape begins again.";

const kNothing = {points: [], box: null, everything: false};

export const segmentation = {
  name: "Segment",
  suits: (model) => model.tasks.includes("segment") && model.segments,
  results: new Results("v1/segment", 64, ({masks}) =>
    ({masks: masks.map(({rle, segmentation: of, iou, predicted_iou: predicted, ...more}) =>
      ({...more, rle: rle ?? of, iou: iou ?? predicted}))})),
  prompts: new Map(),  // of an image: its prompts in the order in which they were given; the last is shown
  shown: new Map(),    // of an image: its masks as a layer
  options(state) {
    this.state = state;
    this.marks = element("ul", {class: "chips", "aria-label": "Points and box"});
    this.everything = element("input", {type: "checkbox"});
    this.everything.addEventListener("change", () => this.add({...kNothing, everything: this.everything.checked}));
    this.side = element("select", {}, ...["8", "16", "32"].map((n) => element("option", {value: n}, `${n} × ${n}`)));
    this.undo = button("Undo", () => this.goBack());
    this.again = button("Begin again", () => this.add(kNothing));
    return [element("details", {class: "wide help"}, element("summary", {}, "How to point at objects"),
      element("p", {}, kHelp)),
    element("div", {class: "wide actions"}, this.undo, this.again,
      element("label", {class: "check"}, this.everything, " Everything in the image"),
      field("Grid of points", this.side, state.show)), this.marks];
  },
  forget() {
    this.prompts.clear();
    this.shown.clear();
  },
  prompt(image = this.state.current) { return this.prompts.get(image?.id)?.at(-1) ?? kNothing; },
  add(prompt) {
    const {id} = this.state.current ?? {};
    if (id === undefined) return;
    this.prompts.set(id, [...(this.prompts.get(id) ?? []), prompt]);
    this.choice = null;
    this.state.show();
  },
  goBack() {
    this.prompts.get(this.state.current?.id)?.pop();
    this.choice = null;
    this.state.show();
  },
  pick(x, y, outside) {
    const {points, box} = this.prompt();
    this.add({points: [...points, outside ? [x, y, 0] : [x, y]], box, everything: false});
  },
  drag([x0, y0], [x1, y1]) {
    const box = [Math.min(x0, x1), Math.min(y0, y1), Math.max(x0, x1), Math.max(y0, y1)];
    this.add({points: this.prompt().points, box, everything: false});
  },
  press(key, control) {
    if (key === "Escape") this.add(kNothing);
    else if (control && key === "z") this.goBack();
    else return false;
    return true;
  },
  // What is asked of the server; null for nothing.
  params({points, box, everything}) {
    if (everything) return {everything: true, "points-per-side": this.side.value};
    return points.length || box ? {point: points.map(String), box: box?.join()} : null;
  },
  showMarks(prompt) {
    const chip = (text, less) => element("li", {}, element("span", {}, text),
      button("×", () => this.add({...prompt, ...less}), {"aria-label": `Remove ${text}`}));
    this.marks.replaceChildren(...prompt.points.map((point, i) =>
      chip(`${point[2] === 0 ? "−" : "+"} ${point[0]}, ${point[1]}`, {points: prompt.points.toSpliced(i, 1)})),
    ...(prompt.box ? [chip(`Box ${prompt.box.join(", ")}`, {box: null})] : []));
    this.everything.checked = prompt.everything;
    this.side.parentElement.hidden = !prompt.everything;
    this.undo.disabled = !this.prompts.get(this.state.current.id)?.length;
    this.again.disabled = prompt === kNothing;
  },
  // Draws the image with its masks and its prompt.
  draw(layer) {
    const {id} = this.state.current, prompt = this.prompt();
    if (layer) this.shown.set(id, layer);
    else this.shown.delete(id);
    this.state.stage.draw((context) => {
      if (layer) drawLayer(context, layer);
      drawPrompt(context, prompt);
    });
  },
  async show(state, signal) {
    const image = state.current, prompt = this.prompt(), params = this.params(prompt);
    this.showMarks(prompt);
    if (!image.preview) throw new Error(`${image.name}: this browser cannot show the image.`);
    this.draw(this.params(prompt) ? this.shown.get(image.id) : null);
    if (!params) {
      state.stage.legend("Click an object, or draw a box around it.");
      state.result.replaceChildren(...this.others());
      return;
    }
    const results = await this.results.of(state, [image], params, signal);
    const [{result: {masks}}] = pairs(state, [image], results);
    if (prompt.everything) this.showAll(masks);
    else this.showChoice(masks);
  },
  // Smaller masks are above larger ones.
  showAll(masks) {
    this.draw(masks.length ? layerOf(masks.toSorted((a, b) => b.area - a.area).map(({rle}) => rle)) : null);
    this.state.stage.legend(masks.length === 1 ? "1 mask" : `${masks.length} masks`);
    this.state.result.replaceChildren(...(masks.length ? [downloads(this.state, masks)] : []), ...this.others());
  },
  // The masks of a prompt, of which one is shown: first the one with the highest predicted IoU.
  showChoice(masks) {
    const {state} = this, {width, height, preview} = state.current;
    const best = masks.reduce((a, b) => (b.iou > a.iou ? b : a)), layers = masks.map(({rle}) => layerOf([rle]));
    const share = ({area}) => percent(area / (width * height));
    const files = element("div"), first = this.choice ?? masks.indexOf(best);
    const choose = (i) => {
      this.choice = i;
      this.draw(layers[i]);
      state.stage.legend(`Mask ${i + 1}: ${share(masks[i])} of the image; predicted IoU ${percent(masks[i].iou)}`);
      files.replaceChildren(downloads(state, [masks[i]]));
    };
    const choices = masks.map((mask, i) => {
      const input = element("input", {type: "radio", name: "mask", checked: i === first});
      const canvas = element("canvas", {"aria-hidden": "true"});
      drawLayer(drawImage(canvas, preview, width, height, 240), layers[i], 0.6);
      input.addEventListener("change", () => choose(i));
      return element("label", {class: "picture"}, canvas, element("span", {}, input,
        percent(mask.iou)));
    });
    state.result.replaceChildren(element("fieldset", {},
      element("legend", {}, "Masks of different extent, with their predicted IoU"),
      element("div", {class: "maps choices"}, ...choices)), files, ...this.others());
    choose(first);
  },
  // The masks of the other images.
  others() {
    const {state} = this, found = state.images.filter(({id}) => this.shown.has(id));
    if (found.every((image) => image === state.current)) return [];
    return [element("h2", {}, "All images"), ...maps(state, state.images.map((image) =>
      ({image, result: this.shown.get(image.id) ?? {}})), (context, layer) => {
      if (layer.width) drawLayer(context, layer);
    })];
  },
};
