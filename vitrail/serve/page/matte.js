// The view of mattes: the object of a trimap or a mask, cut out on a checkerboard.
import {pictureOf} from "./api.js";
import {divided, drawCheckerboard} from "./draw.js";
import {button, element, factsTable, field, filePlace, percent, save, slider} from "./elements.js";

const kKept = 16;     // cut-outs
const kSample = 512;  // pixels of the longer side, of which a file is looked at

// The pixels of a bitmap, made smaller without new colours.
function sampled(bitmap) {
  const scale = Math.min(1, kSample / Math.max(bitmap.width, bitmap.height));
  const width = Math.ceil(bitmap.width * scale), height = Math.ceil(bitmap.height * scale);
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(bitmap, 0, 0, width, height);
  return context.getImageData(0, 0, width, height).data;
}

// "trimap" if there is grey besides black and white, else "mask".
async function kindOf(file) {
  const bitmap = await createImageBitmap(file).catch(() => null);
  if (!bitmap) return "trimap";  // the server says what it is instead
  const pixels = sampled(bitmap);
  bitmap.close();
  return pixels.some((value, i) => i % 4 === 0 && value > 32 && value < 224) ? "trimap" : "mask";
}

// The mean alpha of a cut-out.
function shareOf(bitmap) {
  const pixels = sampled(bitmap);
  let sum = 0;
  for (let i = 3; i < pixels.length; i += 4) sum += pixels[i];
  return sum / 255 / (pixels.length / 4);
}

// White where a cut-out is opaque, black where it is not.
function alphaOf(bitmap) {
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height), context = canvas.getContext("2d");
  context.drawImage(bitmap, 0, 0);
  for (const [operation, color] of [["source-in", "white"], ["destination-over", "black"]]) {
    context.globalCompositeOperation = operation;
    context.fillStyle = color;
    context.fillRect(0, 0, canvas.width, canvas.height);
  }
  return canvas.convertToBlob({type: "image/png"});
}

export const matte = {
  name: "Matte",
  help: "Choose or drop a trimap of the image (white: object, black: background, grey: unknown), or a mask.  Move the " +
    "divider, or click the image where it shall be: the image is left of it, the cut-out right of it.",
  suits: (model) => model.tasks.includes("matte"),
  files: new Map(),  // of an image: its trimap or mask
  known: new Map(),
  options(state) {
    this.state = state;
    this.place = filePlace("Trimap or mask", (file) => this.take(file));
    this.kind = element("select", {}, ...["trimap", "mask"].map((name) => element("option", {value: name}, name)));
    this.band = slider("Unknown pixels at the edge", {min: 1, max: 64, value: 10}, state.show);
    this.divider = slider("Divider", {max: 1, step: 0.01, value: 0, shown: percent}, state.show);
    this.kindField = field("The file is a", this.kind, () => {
      this.files.get(state.current.id).kind = this.kind.value;
      state.show();
    });
    return [this.place.field, this.kindField, this.band.field, this.divider.field];
  },
  forget() { this.known.clear(); },
  async take(file) {
    const image = this.state.current;
    if (!image) return;
    this.files.set(image.id, {file, kind: await kindOf(file)});
    this.state.show();
  },
  pick(x) {
    this.divider.set(x / this.state.stage.width);
    this.state.show();
  },
  async cutOut({model, exif}, image, {file, kind}, signal) {
    const options = {model: model.id, exif, band: kind === "mask" && this.band.input.value};
    const key = JSON.stringify([image.id, kind, options]), kept = this.known.get(key);
    if (kept?.file === file) return kept;
    if (this.known.size >= kKept) this.known.clear();
    const blob = await pictureOf("v1/matte", options, image.file, signal, {[kind]: file});
    const found = {file, blob, bitmap: await createImageBitmap(blob)};
    this.known.set(key, found);
    return found;
  },
  async show(state, signal) {
    const image = state.current, chosen = this.files.get(image.id);
    this.place.set(chosen?.file.name);
    this.kindField.hidden = this.divider.field.hidden = !chosen;
    this.band.field.hidden = chosen?.kind !== "mask";
    if (!chosen) {
      state.stage.draw();
      state.stage.legend("Add a trimap or a mask of this image.");
      state.result.replaceChildren();
      return;
    }
    this.kind.value = chosen.kind;
    const {blob, bitmap} = await this.cutOut(state, image, chosen, signal);
    const {width, height} = state.stage.fit(bitmap), share = shareOf(bitmap);
    state.stage.draw((context) => divided(context, Number(this.divider.input.value), {width, height}, () => {
      drawCheckerboard(context, width, height);
      context.drawImage(bitmap, 0, 0, width, height);
    }));
    state.stage.legend(`The object is ${percent(share)} of the image`);
    const name = image.name.replace(/\.[^.]*$/, "");
    state.result.replaceChildren(factsTable({"mean alpha": share.toFixed(3), "size": [bitmap.width, bitmap.height]}),
      element("div", {class: "actions"},
        button("Save the cut-out", () => save(blob, `${name} cut-out.png`)),
        button("Save alpha", async () => save(await alphaOf(bitmap), `${name} alpha.png`))));
  },
};
