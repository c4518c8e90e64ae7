// The large image: what is drawn over it, and clicks, boxes and keys on it.
import {drawCross, drawImage, drawScale} from "./draw.js";
import {element} from "./elements.js";

const kSide = 1400;        // pixels of the canvas
const kHold = 500;         // milliseconds until a finger that rests means the background
const kDrag = 8;           // pixels of the screen from which on a movement draws a box
const kSteps = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};

export class Stage {
  // handler(): the view, of which pick(), drag() and press() are called if it has them.
  constructor(handler) {
    const byId = (id) => document.getElementById(id);
    Object.assign(this, {handler, section: byId("stage"), surface: byId("surface"), canvas: byId("canvas"),
      band: byId("band"), legendLine: byId("legend"), bitmap: null, width: 0, height: 0, cursor: null, corner: null});
    this.listenToPointers();
    this.canvas.addEventListener("keydown", (event) => { if (this.press(event)) event.preventDefault(); });
  }

  // image: null if there is none; bitmap: null if the browser cannot show it.
  set(image, bitmap) {
    this.bitmap?.close();
    Object.assign(this, {bitmap, width: image?.width || 640, height: image?.height || 480, cursor: null, corner: null});
    this.section.hidden = !image;
    this.canvas.setAttribute("aria-label", image ? `${image.name} with what is shown over it` : "");
    this.surface.style.setProperty("--aspect", this.width / this.height);
    this.draw();
    this.legend("");
  }

  // The size of the image, which for one that the browser cannot show is the server's.
  fit(region) {
    if (!this.bitmap) {
      Object.assign(this, {width: region.width, height: region.height});
      this.surface.style.setProperty("--aspect", this.width / this.height);
    }
    return {width: this.width, height: this.height};
  }

  // Draws the image, and over it what `paint` draws.
  draw(paint = null) {
    this.paint = paint;
    this.surface.hidden = !this.bitmap && !paint;
    const context = drawImage(this.canvas, this.bitmap, this.width, this.height, kSide);
    paint?.(context);
    if (this.cursor) drawCross(context, this.cursor);
  }

  // range: the values of the darkest and the lightest colour; points: the colour map, else that of the page.
  legend(text, range = null, points = undefined) {
    const missing = this.surface.hidden ? "This browser cannot show the image." : "";
    this.legendLine.replaceChildren(element("span", {}, text || missing));
    if (!range) return;
    const colors = element("canvas", {"aria-hidden": "true"});
    drawScale(colors, points);
    const shown = range.map((value) => Number(value.toPrecision(2)).toString());
    this.legendLine.append(element("span", {class: "scale"}, shown[0], colors, shown[1]));
  }

  pixelAt(event) {
    const box = this.canvas.getBoundingClientRect();
    return [[event.clientX - box.left, box.width, this.width], [event.clientY - box.top, box.height, this.height]].map(
      ([at, shown, size]) => Math.min(Math.max(Math.floor(at * size / shown), 0), size - 1));
  }

  showBand([x0, y0], [x1, y1]) {
    const part = (value, size) => `${100 * value / size}%`;
    this.band.hidden = false;
    Object.assign(this.band.style, {left: part(Math.min(x0, x1), this.width), top: part(Math.min(y0, y1), this.height),
      width: part(Math.abs(x1 - x0), this.width), height: part(Math.abs(y1 - y0), this.height)});
  }

  listenToPointers() {
    let pressed = null;  // where a finger or the mouse went down
    const end = () => {
      clearTimeout(pressed?.hold);
      pressed = null;
      this.band.hidden = true;
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      if (!this.handler().pick || !event.isPrimary || pressed) return;
      const background = event.shiftKey || event.button === 2;
      pressed = {at: this.pixelAt(event), x: event.clientX, y: event.clientY, background, drags: false, done: false};
      if (event.pointerType === "mouse") return;
      pressed.hold = setTimeout(() => {
        pressed.done = true;
        navigator.vibrate?.(20);
        this.handler().pick(...pressed.at, true);
      }, kHold);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!pressed || pressed.done || !event.isPrimary) return;
      pressed.drags ||= Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y) > kDrag;
      if (!pressed.drags) return;
      clearTimeout(pressed.hold);
      if (!this.handler().drag) return;
      if (!this.canvas.hasPointerCapture(event.pointerId)) this.canvas.setPointerCapture(event.pointerId);
      this.showBand(pressed.at, this.pixelAt(event));
    });
    this.canvas.addEventListener("pointerup", (event) => {
      const {at, background, drags, done} = pressed ?? {done: true};
      end();
      if (done || !event.isPrimary) return;
      if (!drags) this.handler().pick(...at, background);
      else this.handler().drag?.(at, this.pixelAt(event));
    });
    this.canvas.addEventListener("pointercancel", end);
    this.canvas.addEventListener("contextmenu", (event) => { if (this.handler().pick) event.preventDefault(); });
  }

  // Whether a key means something: arrows move the cross, Enter is a click, B a corner of a box.
  press({key, shiftKey, ctrlKey, metaKey}) {
    const view = this.handler();
    if (!view.pick || this.section.hidden) return false;
    if (view.press?.(key, ctrlKey || metaKey)) return true;
    const step = Math.max(1, Math.round(Math.max(this.width, this.height) / (shiftKey ? 200 : 40)));
    const [x, y] = this.cursor ?? [Math.floor(this.width / 2), Math.floor(this.height / 2)];
    if (key === "Enter") view.pick(x, y, shiftKey);
    else if (view.drag && key.toLowerCase() === "b") this.setCorner([x, y]);
    else if (kSteps[key]) {
      const clamp = (value, size) => Math.min(Math.max(value, 0), size - 1);
      this.cursor = [clamp(x + step * kSteps[key][0], this.width), clamp(y + step * kSteps[key][1], this.height)];
      this.draw(this.paint);
      if (this.corner) this.showBand(this.corner, this.cursor);
      this.legend(`The cross is at ${this.cursor.join(", ")}.`);
    } else return false;
    return true;
  }

  setCorner(at) {
    const corner = this.corner;
    this.corner = corner ? null : at;
    this.cursor = at;
    this.band.hidden = true;
    if (corner) this.handler().drag(corner, at);
    else this.legend("Move the cross to the other corner of the box, then press B.");
  }
}
