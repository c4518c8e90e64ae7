// The view of texts as classes (zero-shot), whose labels are chips with their scores.
import {element, field, percent} from "./elements.js";
import {cards, pairs} from "./gallery.js";
import {bars} from "./predictions.js";
import {Results} from "./results.js";

export const texts = {
  name: "Texts",
  suits: (model) => model.tasks.includes("zeroshot") && model.texts,
  results: new Results("v1/zeroshot"),
  labels: ["cat", "cup of coffee", "rocket", "dog"],
  options(state) {
    this.chips = element("ul", {class: "chips", "aria-label": "Labels"});
    this.added = element("input", {type: "text", placeholder: "Add a label", "aria-label": "Add a label"});
    this.added.addEventListener("keydown", (event) => {
      if (event.key === "Backspace" && !this.added.value) this.change(state, this.labels.slice(0, -1));
      if (event.key !== "Enter" && event.key !== ",") return;
      event.preventDefault();
      this.add(state);
    });
    this.added.addEventListener("change", () => this.add(state));
    this.template = element("input", {type: "text", placeholder: "a photo of a {}"});
    this.list();
    return [element("div", {class: "wide"}, this.chips, this.added),
      field("Template, with {} for the label", this.template, state.show)];
  },
  // The chips of all labels.  A changed text is a changed label.
  list() {
    this.chips.replaceChildren(...this.labels.map((label) => {
      const text = element("input", {type: "text", "aria-label": `Label ${label}`, size: String(label.length + 1)});
      text.value = label;
      return element("li", {}, text, element("span", {class: "score"}), element("button",
        {type: "button", "aria-label": `Remove ${label}`}, "×"));
    }));
    [...this.chips.children].forEach((chip, i) => {
      const [text, , remove] = chip.children, others = this.labels.toSpliced(i, 1);
      text.addEventListener("input", () => text.setAttribute("size", String(text.value.length + 1)));
      text.addEventListener("change", () =>
        this.change(this.state, text.value.trim() ? this.labels.with(i, text.value.trim()) : others));
      remove.addEventListener("click", () => this.change(this.state, others));
    });
  },
  add(state) {
    const more = this.added.value.split(",").map((text) => text.trim()).filter(Boolean);
    this.added.value = "";
    if (more.length) this.change(state, [...this.labels, ...more]);
  },
  change(state, labels) {
    this.labels = [...new Set(labels)];
    this.list();
    if (document.activeElement === document.body) this.added.focus();
    state.show();
  },
  async show(state, signal) {
    this.state = state;
    if (!this.labels.length) throw new Error("Add a label.");
    const params = {labels: this.labels, template: this.template.value, top: this.labels.length};
    const results = await this.results.of(state, state.images, params, signal);
    const all = pairs(state, state.images, results);
    const current = all.find(({image}) => image === state.current)?.result;
    [...this.chips.children].forEach((chip, i) => {
      const found = current?.predictions?.find(({label}) => label === this.labels[i]);
      chip.children[1].textContent = found ? percent(found.probability) : "";
    });
    state.result.replaceChildren(...cards(state, all, bars));
  },
};
