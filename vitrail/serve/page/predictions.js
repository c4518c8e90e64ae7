// Predictions of an image as bars.
import {element, percent} from "./elements.js";

export function bars({activation, predictions}) {
  return element("ol", {class: "bars"}, ...predictions.map(({label, probability}) => {
    const text = activation === "none" ? probability.toPrecision(6) : percent(probability);
    const item = element("li", {}, element("span", {}, label), element("span", {}, text));
    if (activation === "none") return item;
    const bar = element("div", {class: "bar", "aria-hidden": "true"}, element("div"));
    bar.firstChild.style.width = `${100 * probability}%`;
    item.append(bar);
    return item;
  }));
}
