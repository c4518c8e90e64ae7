// The views of the page.  Each has a name, tells whether it suits a model, and shows something of the images.
import {request} from "./api.js";
import {control, element, slider} from "./controls.js";
import {drawComponents, drawHeat, drawImage, drawPoint} from "./draw.js";
import {segmentation} from "./segment.js";

function bars({activation, predictions}) {
  const list = element("ol", {class: "bars"});
  for (const {label, probability} of predictions) {
    if (activation === "none") {
      list.append(element("li", {}, element("span", {}, label), element("span", {}, probability.toPrecision(6))));
      continue;
    }
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    bar.setAttribute("width", `${100 * probability}%`);
    bar.setAttribute("height", "100%");
    svg.setAttribute("aria-hidden", "true");
    svg.append(bar);
    list.append(element("li", {}, svg, element("span", {}, label),
      element("span", {}, `${(100 * probability).toFixed(1)} %`)));
  }
  return list;
}

function predictions(value, files, panel) {
  const list = Array.isArray(value) ? value : [value];
  panel.replaceChildren(...list.flatMap((item, i) => [
    ...(files.length > 1 ? [element("h2", {}, files[i].name)] : []),
    item.error ? element("p", {}, item.error) : bars(item)]));
}

const seesPatches = (model) => model.depth > 0;

const classify = {
  name: "Classify",
  suits: (model) => model.classes > 0,
  async show(state, panel, signal) {
    predictions(await request("v1/classify", {model: state.model.id, top: 5}, state.files, signal), state.files, panel);
  },
};

const zeroShot = {
  name: "Texts",
  suits: (model) => model.texts,
  options(state) {
    this.labels = element("input", {type: "text", value: "cat, dog, bicycle"});
    this.template = element("input", {type: "text", placeholder: "a photo of a {}"});
    this.result = element("div");
    return [control(state, "Labels, with commas between them", this.labels),
      control(state, "Template, with {} for the label", this.template), this.result];
  },
  async show(state, panel, signal) {
    const params = {model: state.model.id, labels: this.labels.value, template: this.template.value};
    predictions(await request("v1/zeroshot", params, state.files, signal), state.files, this.result);
  },
};

const attention = {
  name: "Attention",
  suits: seesPatches,
  options(state) {
    const {depth, heads} = state.model;
    this.layer = slider(depth - 1, depth - 1);
    this.head = element("select", {}, element("option", {value: "mean"}, "mean over heads"),
      ...Array.from({length: heads}, (_, i) => element("option", {value: String(i)}, `head ${i}`)));
    this.rollout = element("input", {type: "checkbox"});
    this.point = element("input", {type: "text", inputmode: "numeric", placeholder: "the class token"});
    return [control(state, "Block", this.layer), control(state, "Head", this.head),
      control(state, "Rollout over all blocks", this.rollout),
      control(state, "Pixel X,Y whose patch attends, or click the image", this.point)];
  },
  pick(state, x, y) {
    this.point.value = `${x},${y}`;
    state.show();
  },
  async show(state, panel, signal) {
    const params = {model: state.model.id, query: this.point.value.replaceAll(" ", ""),
      ...(this.rollout.checked ? {rollout: true} : {layer: this.layer.value, head: this.head.value})};
    const value = await request("v1/attention", params, [state.files[0]], signal);
    const [low, high] = drawHeat(state.canvas, state.image, value.region, value.shape, value.maps[0].values);
    if (params.query) drawPoint(state.canvas, params.query.split(",").map(Number));
    state.legend(`Attention of ${value.attending}, ${value.maps[0].label}: dark ${low.toPrecision(2)}, light ${
      high.toPrecision(2)}`);
  },
};

const components = {
  name: "Features",
  suits: seesPatches,
  options(state) {
    this.layer = slider(state.model.depth - 1, state.model.depth - 1);
    this.foreground = element("select", {}, element("option", {value: "none"}, "all patches"),
      element("option", {value: "first"}, "foreground"));
    this.opacity = element("input", {type: "range", min: "0", max: "1", step: "0.05", value: "0.75"});
    return [control(state, "Block", this.layer), control(state, "Patches", this.foreground),
      control(state, "Opacity", this.opacity)];
  },
  async show(state, panel, signal) {
    const params = {model: state.model.id, layer: this.layer.value, foreground: this.foreground.value};
    const value = await request("v1/pca", params, [state.files[0]], signal);
    drawComponents(state.canvas, state.image, value.region, value.shape, value.colors, Number(this.opacity.value));
    state.legend("The first three principal components of the patch features as red, green and blue");
  },
};

const similarity = {
  name: "Compare",
  suits: seesPatches,
  async show(state, panel, signal) {
    if (state.files.length < 2) {
      panel.replaceChildren(element("p", {}, "Choose two or more images to compare their embeddings."));
      return;
    }
    const rows = await request("v1/embed", {model: state.model.id, normalize: true}, state.files, signal);
    const cosine = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
    const name = (i) => `${i + 1}: ${state.files[i].name}`;
    const table = element("table", {}, element("caption", {}, "Cosine similarity"),
      element("tr", {}, element("td"), ...rows.map((_, i) => element("th", {scope: "col"}, String(i + 1)))),
      ...rows.map((row, i) => element("tr", {}, element("th", {scope: "row"}, name(i)), ...rows.map((other) =>
        element("td", {}, row.error || other.error ? "–" : cosine(row.embedding, other.embedding).toFixed(3))))));
    panel.replaceChildren(element("div", {class: "scroll"}, table));
  },
};

const information = {
  name: "Model",
  suits: () => true,
  needsNoImage: true,
  async show(state, panel) {
    const {id, object, created, owned_by: owner, ...facts} = state.model;
    panel.replaceChildren(element("table", {}, ...Object.entries({name: id, ...facts}).map(([key, value]) =>
      element("tr", {}, element("th", {scope: "row"}, key.replaceAll("_", " ")), element("td", {},
        Array.isArray(value) ? value.join(" × ") : String(value))))));
  },
};

export const views = [segmentation, classify, zeroShot, attention, components, similarity, information];
export const showPlain = (state) => { if (state.image) drawImage(state.canvas, state.image); };
