// The view of texts as classes (zero-shot), whose labels are chips with their scores.
import {Chips} from "./chips.js";
import {element, field, percent} from "./elements.js";
import {cards, pairs} from "./gallery.js";
import {bars} from "./predictions.js";
import {Results} from "./results.js";

export const texts = {
  name: "Texts",
  suits: (model) => model.tasks.includes("zeroshot") && model.texts,
  results: new Results("v1/zeroshot"),
  chips: new Chips(["cat", "cup of coffee", "rocket", "dog"]),
  options(state) {
    this.template = element("input", {type: "text", placeholder: "a photo of a {}"});
    return [this.chips.field(state.show), field("Template, with {} for the label", this.template, state.show)];
  },
  async show(state, signal) {
    const {labels} = this.chips;
    if (!labels.length) throw new Error("Add a label.");
    const params = {labels, template: this.template.value, top: labels.length};
    const results = await this.results.of(state, state.images, params, signal);
    const all = pairs(state, state.images, results);
    const current = all.find(({image}) => image === state.current)?.result;
    this.chips.score((label) => {
      const found = current?.predictions?.find((each) => each.label === label);
      return found ? percent(found.probability) : "";
    });
    state.result.replaceChildren(...cards(state, all, bars));
  },
};
