// The view of Segment Anything: clicks, a box, or everything.
import {request} from "./api.js";
import {control, element} from "./controls.js";
import {drawImage} from "./draw.js";
import {drawMasks, drawPrompt} from "./masks.js";

const kHelp = "Click an object, with Shift what is not part of it, or draw a box around it.  With the keyboard on the " +
  "image: arrows move the cross, Enter is a click, B is a corner of a box, Escape begins again.";
const kSteps = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};

const numbers = (text) => text.split(",").map(Number);
const shown = (probability) => (100 * probability).toFixed(1);

export const segmentation = {
  name: "Segment",
  suits: (model) => model.segments,
  options(state) {
    this.points = element("input", {type: "text", placeholder: "X,Y of pixels; X,Y,0 outside the object"});
    this.box = element("input", {type: "text", placeholder: "X0,Y0,X1,Y1"});
    this.everything = element("input", {type: "checkbox"});
    this.side = element("select", {}, ...["8", "16", "32"].map((n) => element("option", {value: n}, `${n} × ${n}`)));
    this.result = element("div");
    this.cursor = this.corner = null;
    const clear = element("button", {type: "button"}, "Begin again");
    clear.addEventListener("click", () => this.clear(state));
    return [element("p", {}, kHelp), control(state, "Points, with spaces between them", this.points),
      control(state, "Box", this.box), control(state, "Everything in the image", this.everything),
      control(state, "Grid of points for everything", this.side), clear, this.result];
  },
  clear(state) {
    this.points.value = this.box.value = "";
    this.everything.checked = false;
    this.cursor = this.corner = null;
    state.show();
  },
  pick(state, x, y, outside) {
    this.everything.checked = false;
    this.points.value = `${this.points.value} ${x},${y}${outside ? ",0" : ""}`.trim();
    state.show();
  },
  drag(state, [x0, y0], [x1, y1]) {
    this.everything.checked = false;
    this.box.value = [Math.min(x0, x1), Math.min(y0, y1), Math.max(x0, x1), Math.max(y0, y1)].join(",");
    state.show();
  },
  // A key on the image.  Returns whether it means something.
  press(state, key, shift) {
    const {width, height} = state.image, step = Math.max(1, Math.round(width / (shift ? 200 : 40)));
    this.cursor ??= [Math.floor(width / 2), Math.floor(height / 2)];
    const [x, y] = this.cursor;
    if (key === "Enter") this.pick(state, x, y, shift);
    else if (key === "Escape") this.clear(state);
    else if (key === "b" || key === "B") {
      if (this.corner) this.drag(state, this.corner, this.cursor);
      this.corner = this.corner ? null : this.cursor;
    } else if (kSteps[key]) {
      const clamp = (value, size) => Math.min(Math.max(value, 0), size - 1);
      this.cursor = [clamp(x + step * kSteps[key][0], width), clamp(y + step * kSteps[key][1], height)];
      state.legend(`The cross is at ${this.cursor.join(", ")}.`);
      this.draw(state);
    } else return false;
    return true;
  },
  prompt() {
    const points = this.points.value.split(" ").filter(Boolean);
    if (this.everything.checked) return {everything: true, "points-per-side": this.side.value};
    return points.length || this.box.value ? {point: points, box: this.box.value.replaceAll(" ", "")} : null;
  },
  draw(state, masks = this.masks ?? []) {
    this.masks = masks;
    drawImage(state.canvas, state.image);
    drawMasks(state.canvas, masks, 0.5);
    const all = this.everything.checked;
    drawPrompt(state.canvas, all ? [] : this.points.value.split(" ").filter(Boolean).map(numbers),
      all || !this.box.value ? [] : numbers(this.box.value), this.cursor);
  },
  async show(state, panel, signal) {
    this.result.replaceChildren();
    if (!state.image) throw new Error("This browser cannot show the image.");
    this.draw(state, []);
    const prompt = this.prompt();
    if (!prompt) return;
    const {masks} = await request("v1/segment", {model: state.model.id, ...prompt}, [state.files[0]], signal);
    if (prompt.everything) this.showAll(state, masks);
    else this.showChoice(state, masks);
  },
  // Smaller masks are above larger ones.
  showAll(state, masks) {
    this.draw(state, masks.toSorted((a, b) => b.area - a.area).map((mask) => mask.segmentation));
    state.legend(masks.length === 1 ? "1 mask" : `${masks.length} masks`);
  },
  // The masks of a prompt, of which one is shown.
  showChoice(state, masks) {
    const best = masks.reduce((a, b) => (b.iou > a.iou ? b : a));
    const choose = (mask) => {
      this.draw(state, [mask.rle]);
      state.legend(`${mask.area} pixels; predicted IoU ${shown(mask.iou)} %`);
    };
    this.result.replaceChildren(element("fieldset", {}, element("legend", {}, "Masks of different extent"),
      ...masks.map((mask, i) => {
        const input = element("input", {type: "radio", name: "mask", checked: mask === best});
        input.addEventListener("change", () => choose(mask));
        return element("label", {}, input, ` ${i + 1}: ${mask.area} pixels, IoU ${shown(mask.iou)} %`);
      })));
    choose(best);
  },
};
