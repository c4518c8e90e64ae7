// The view of a classifier's classes.
import {slider} from "./elements.js";
import {cards, pairs} from "./gallery.js";
import {bars} from "./predictions.js";
import {Results} from "./results.js";

export const classify = {
  name: "Classify",
  suits: (model) => model.tasks.includes("classify") && model.classes > 0,
  results: new Results("v1/classify"),
  options(state) {
    const max = Math.min(20, state.model.classes);
    this.top = slider("Classes shown", {min: 1, max, value: Math.min(5, max)}, state.show);
    return max > 1 ? [this.top.field] : [];
  },
  async show(state, signal) {
    const results = await this.results.of(state, state.images, {top: this.top.input.value}, signal);
    state.result.replaceChildren(...cards(state, pairs(state, state.images, results), bars));
  },
};
