// The view that compares images by their embeddings.
import {drawImage} from "./draw.js";
import {element} from "./elements.js";
import {pairs, picture} from "./gallery.js";
import {Results} from "./results.js";

const cosine = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);

function thumbnail({preview, width, height, name}) {
  const canvas = element("canvas", {role: "img", "aria-label": name, title: name});
  drawImage(canvas, preview, width || 640, height || 480, 120);
  return canvas;
}

export const compare = {
  name: "Compare",
  suits: (model) => model.tasks.includes("embed") && model.depth > 0,
  results: new Results("v1/embed"),
  async show(state, signal) {
    if (state.images.length < 2) {
      const hint = "Add another image to compare their embeddings.";
      return state.result.replaceChildren(element("p", {class: "hint"}, hint));
    }
    const results = await this.results.of(state, state.images, {normalize: true}, signal);
    const all = pairs(state, state.images, results).filter(({result}) => !result.error);
    const current = all.find(({image}) => image === state.current);
    const similarity = (a, b) => cosine(a.result.embedding, b.result.embedding);
    const parts = [];
    if (current) {
      const others = all.filter((one) => one !== current).map((one) => ({...one, value: similarity(current, one)}));
      parts.push(element("h2", {}, `Most similar to ${current.image.name}`),
        element("ol", {class: "maps"}, ...others.toSorted((a, b) => b.value - a.value).map(({image, value}) =>
          element("li", {}, picture(state, image),
            element("span", {}, element("b", {}, value.toFixed(3)), ` ${image.name}`)))));
    }
    parts.push(element("div", {class: "scroll", tabindex: "0", role: "group", "aria-label": "Similarity of all images"},
      this.matrix(all, similarity)));
    state.result.replaceChildren(...parts);
  },
  matrix(all, similarity) {
    const cell = (value) => {
      const result = element("td", {}, value.toFixed(3));
      result.style.setProperty("--share", `${100 * Math.max(0, value) ** 2}%`);
      return result;
    };
    return element("table", {class: "matrix"}, element("caption", {}, "Cosine similarity"),
      element("thead", {}, element("tr", {}, element("td"), ...all.map(({image}) =>
        element("th", {scope: "col"}, thumbnail(image))))),
      element("tbody", {}, ...all.map((row) => element("tr", {}, element("th", {scope: "row"}, thumbnail(row.image)),
        ...all.map((column) => cell(similarity(row, column)))))));
  },
};
