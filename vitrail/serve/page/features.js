// Views of patch features: their principal components, similarity to a patch, and their norms.
import {request} from "./api.js";
import {drawColors, drawRing, heat, rangeOf} from "./draw.js";
import {element, field, slider} from "./elements.js";
import {maps, pairs} from "./gallery.js";
import {Results} from "./results.js";

const blockSlider = (state) =>
  slider("Block", {max: state.model.depth - 1, value: state.model.depth - 1}, state.show);
const opacitySlider = (state, value) => slider("Opacity", {max: 1, step: 0.05, value}, state.show);

// One PCA over all images, so that they share their colours.
export const components = {
  name: "Features",
  suits: (model) => model.tasks.includes("pca") && model.depth > 0,
  options(state) {
    this.layer = blockSlider(state);
    this.foreground = element("select", {}, element("option", {value: "none"}, "all patches"),
      element("option", {value: "first"}, "foreground"));
    this.opacity = opacitySlider(state, 0.75);
    return [this.layer.field, field("Patches", this.foreground, state.show), this.opacity.field];
  },
  async results(state, signal) {
    const params = {model: state.model.id, layer: this.layer.input.value, foreground: this.foreground.value,
      exif: state.exif};
    const key = JSON.stringify([params, state.images.map(({id}) => id)]);
    if (this.key === key) return this.values;
    const answer = await request("v1/pca", params, state.images.map(({file}) => file), signal);
    this.values = [answer].flat();
    this.key = key;
    return this.values;
  },
  async show(state, signal) {
    const all = pairs(state, state.images, await this.results(state, signal));
    const paint = (context, {region, shape, colors}) => drawColors(context, region, shape,
      colors.map((value) => 255 * value), Number(this.opacity.input.value));
    const current = all.find(({image}) => image === state.current).result;
    if (!current.error) {
      state.stage.fit(current.region);
      state.stage.draw((context) => paint(context, current));
      state.stage.legend("The first three principal components of the patch features as red, green and blue" +
        (all.length > 1 ? `, common to ${all.length} images` : ""));
    }
    state.result.replaceChildren(...maps(state, all, paint));
  },
};

// What is kept of an image: the grid of features, and the length of each.
function gridOf({shape: [rows, columns, dim], region, embedding}) {
  const features = Float32Array.from(embedding), norms = new Float32Array(rows * columns);
  for (let i = 0; i < norms.length; ++i) norms[i] = Math.hypot(...features.subarray(i * dim, (i + 1) * dim));
  return {shape: [rows, columns], dim, region, features, norms};
}

// The patch at a pixel; null outside what the model sees.
function patchAt({shape: [rows, columns], region}, [x, y]) {
  const row = Math.floor((y - region.top) / (region.bottom - region.top) * rows);
  const column = Math.floor((x - region.left) / (region.right - region.left) * columns);
  return row < 0 || row >= rows || column < 0 || column >= columns ? null : row * columns + column;
}

// Cosine similarity of each patch of `grid` to patch `at` of `from`.
function similarities(grid, from, at) {
  const {dim} = grid, query = from.features.subarray(at * dim, (at + 1) * dim);
  const values = new Float32Array(grid.norms.length);
  for (let i = 0; i < values.length; ++i) {
    let sum = 0;
    for (let d = 0; d < dim; ++d) sum += query[d] * grid.features[i * dim + d];
    values[i] = sum / (grid.norms[i] * from.norms[at] || 1);
  }
  return values;
}

export const patches = {
  name: "Patches",
  suits: (model) => model.tasks.includes("embed") && model.depth > 0,
  help: "Click a patch to see what is similar to it, in all images.",
  results: new Results("v1/embed", 256, gridOf),
  points: new Map(),  // the pixel of an image whose patch is compared
  options(state) {
    this.state = state;
    this.shown = element("select", {}, element("option", {value: "similarity"}, "similarity to a patch"),
      element("option", {value: "norm"}, "norms of the patch tokens"));
    this.layer = blockSlider(state);
    this.norm = element("input", {type: "checkbox", checked: true});
    this.opacity = opacitySlider(state, 0.75);
    return [field("Shown", this.shown, state.show), this.layer.field, this.opacity.field,
      field("Final norm", this.norm, state.show)];
  },
  forget() { this.points.clear(); },
  pick(x, y) {
    this.shown.value = "similarity";
    this.points.set(this.state.current.id, [x, y]);
    this.state.show();
  },
  async show(state, signal) {
    const params = {tokens: "patch", layer: this.layer.input.value, "no-norm": !this.norm.checked};
    const all = pairs(state, state.images, await this.results.of(state, state.images, params, signal));
    const current = all.find(({image}) => image === state.current).result;
    if (current.error) return state.result.replaceChildren();
    const similar = this.shown.value === "similarity", {width, height} = state.stage.fit(current.region);
    const point = this.points.get(state.current.id) ?? [Math.floor(width / 2), Math.floor(height / 2)];
    const at = patchAt(current, point);
    if (similar && at === null) throw new Error("The model does not see this part of the image.");
    const valuesOf = (grid) => (similar ? similarities(grid, current, at) : grid.norms);
    const paint = (context, grid, range) => drawColors(context, grid.region, grid.shape, heat(valuesOf(grid), range),
      Number(this.opacity.input.value));
    const range = rangeOf(all.flatMap(({result}) => (result.error ? [] : rangeOf(valuesOf(result)))));
    state.stage.draw((context) => {
      paint(context, current, range);
      if (similar) drawRing(context, point);
    });
    const title = similar ? `Cosine similarity to the patch at ${point.join(", ")}` : "L2 norms of the patch tokens";
    state.stage.legend(title, range);
    state.result.replaceChildren(...maps(state, all, (context, grid) => paint(context, grid, range)));
  },
};
