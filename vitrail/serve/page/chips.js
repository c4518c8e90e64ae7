// Labels that the user gives, as chips with a score each.
import {element} from "./elements.js";

export class Chips {
  // act(): runs when the labels have changed.
  constructor(labels) { Object.assign(this, {labels, act: () => {}}); }

  // The chips of all labels, and a field for more.
  field(act) {
    this.act = act;
    this.list = element("ul", {class: "chips", "aria-label": "Labels"});
    this.added = element("input", {type: "text", placeholder: "Add a label", "aria-label": "Add a label"});
    this.added.addEventListener("keydown", (event) => {
      if (event.key === "Backspace" && !this.added.value) this.change(this.labels.slice(0, -1));
      if (event.key !== "Enter" && event.key !== ",") return;
      event.preventDefault();
      this.add();
    });
    this.added.addEventListener("change", () => this.add());
    this.show();
    return element("div", {class: "wide"}, this.list, this.added);
  }
  // A changed text is a changed label.
  show() {
    this.list.replaceChildren(...this.labels.map((label) => {
      const text = element("input", {type: "text", "aria-label": `Label ${label}`, size: String(label.length + 1)});
      text.value = label;
      return element("li", {}, text, element("span", {class: "score"}), element("button",
        {type: "button", "aria-label": `Remove ${label}`}, "×"));
    }));
    [...this.list.children].forEach((chip, i) => {
      const [text, , remove] = chip.children, others = this.labels.toSpliced(i, 1);
      text.addEventListener("input", () => text.setAttribute("size", String(text.value.length + 1)));
      text.addEventListener("change", () =>
        this.change(text.value.trim() ? this.labels.with(i, text.value.trim()) : others));
      remove.addEventListener("click", () => this.change(others));
    });
  }
  add() {
    const more = this.added.value.split(",").map((text) => text.trim()).filter(Boolean);
    this.added.value = "";
    if (more.length) this.change([...this.labels, ...more]);
  }
  change(labels) {
    this.labels = [...new Set(labels)];
    this.show();
    if (document.activeElement === document.body) this.added.focus();
    this.act();
  }
  // scoreOf(label): a text beside it.
  score(scoreOf) {
    [...this.list.children].forEach((chip, i) => { chip.children[1].textContent = scoreOf(this.labels[i]); });
  }
}
