// The view of attention: one map over each image, or the maps of all heads and blocks.
import {drawColors, drawMap, drawRing, heat, rangeOf} from "./draw.js";
import {button, element, field, slider} from "./elements.js";
import {maps, pairs} from "./gallery.js";
import {Results} from "./results.js";

const paint = (context, {region, shape, maps: [{values}]}, opacity) =>
  drawColors(context, region, shape, heat(values, rangeOf(values)), opacity);

export const attention = {
  name: "Attention",
  suits: (model) => model.tasks.includes("attention") && model.depth > 0,
  help: "Click a patch to see where it attends.",
  results: new Results("v1/attention"),
  queries: new Map(),  // the pixel of an image whose patch attends
  options(state) {
    const {depth, heads} = state.model;
    this.state = state;
    this.layer = slider("Block", {max: depth - 1, value: depth - 1}, state.show);
    this.head = element("select", {}, element("option", {value: "mean"}, "mean over heads"),
      ...Array.from({length: heads}, (_, i) => element("option", {value: String(i)}, `head ${i}`)));
    this.rollout = element("input", {type: "checkbox"});
    this.all = element("input", {type: "checkbox"});
    this.opacity = slider("Opacity", {max: 1, step: 0.05, value: 0.65}, state.show);
    this.reset = button("Clear the patch", () => this.press("Escape"));
    return [this.layer.field, field("Head", this.head, state.show), this.opacity.field,
      field("Rollout over all blocks", this.rollout, state.show), field("All heads and blocks", this.all, state.show),
      this.reset];
  },
  pick(x, y) {
    this.queries.set(this.state.current.id, [x, y]);
    this.state.show();
  },
  press(key) {
    if (key !== "Escape") return false;
    this.queries.delete(this.state.current.id);
    this.state.show();
    return true;
  },
  forget() { this.queries.clear(); },
  async mapsOf(state, images, params, signal) {
    const found = new Map();
    const ask = async (list, options) => {
      const results = await this.results.of(state, list, options, signal);
      list.forEach((image, i) => found.set(image, results[i]));
    };
    const queried = images.filter(({id}) => this.queries.has(id));
    if (queried.length < images.length) await ask(images.filter((image) => !queried.includes(image)), params);
    for (const image of queried) await ask([image], {...params, query: this.queries.get(image.id).join()});
    return images.map((image) => found.get(image));
  },
  async show(state, signal) {
    const rollout = this.rollout.checked, query = this.queries.get(state.current.id);
    const params = rollout ? {rollout} : {layer: this.layer.input.value, head: this.head.value};
    this.reset.disabled = !query;
    const all = pairs(state, state.images, await this.mapsOf(state, state.images, params, signal));
    const current = all.find(({image}) => image === state.current).result, opacity = Number(this.opacity.input.value);
    if (!current.error) {
      state.stage.fit(current.region);
      state.stage.draw((context) => {
        paint(context, current, opacity);
        if (query) drawRing(context, query);
      });
      const [{label, values}] = current.maps;
      state.stage.legend(`Attention of ${current.attending}, ${label}`, rangeOf(values));
    }
    state.result.replaceChildren(...maps(state, all, (context, result) => paint(context, result, opacity)));
    if (!this.all.checked || current.error) return;
    const [sheet] = await this.mapsOf(state, [state.current], {layer: "all", head: "all"}, signal);
    if (sheet.error) throw new Error(`${state.current.name}: ${sheet.error}`);
    state.result.append(this.sheetOf(state, sheet));
  },
  // A row for each head, a column for each block, each map with its own scale.
  sheetOf(state, {shape, maps: list}) {
    const {depth} = state.model, heads = list.length / depth;
    const numbers = (length) => Array.from({length}, (_, i) => i);
    const chosen = (block, head) => !this.rollout.checked && Number(this.layer.input.value) === block &&
      this.head.value === String(head);
    const tile = (block, head) => {
      const canvas = element("canvas", {"aria-hidden": "true"});
      drawMap(canvas, shape, list[block * heads + head].values);
      return button(canvas, () => {
        this.layer.set(block);
        this.head.value = String(head);
        this.rollout.checked = false;
        state.show();
      }, {"aria-label": `Block ${block}, head ${head}`, "aria-pressed": String(chosen(block, head))});
    };
    return element("figure", {class: "sheet"},
      element("figcaption", {}, "All maps of this image: rows are heads, columns are blocks, each with its own scale"),
      element("table", {},
        element("thead", {}, element("tr", {}, element("td"), ...numbers(depth).map((block) =>
          element("th", {scope: "col"}, String(block))))),
        element("tbody", {}, ...numbers(heads).map((head) => element("tr", {},
          element("th", {scope: "row"}, String(head)),
          ...numbers(depth).map((block) => element("td", {}, tile(block, head))))))));
  },
};
