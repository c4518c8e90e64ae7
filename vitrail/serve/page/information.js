// The view of what the server says of a model.
import {element} from "./elements.js";

export const information = {
  name: "Model",
  suits: () => true,
  needsNoImage: true,
  async show(state) {
    const {id, object, created, owned_by: owner, ...facts} = state.model;
    const text = (value) => (Array.isArray(value) ? value.join(typeof value[0] === "number" ? " × " : ", ")
      : typeof value === "boolean" ? (value ? "yes" : "no") : String(value));
    state.result.replaceChildren(element("table", {class: "facts"}, element("tbody", {},
      ...Object.entries({name: id, ...facts}).map(([key, value]) => element("tr", {},
        element("th", {scope: "row"}, key.replaceAll("_", " ")), element("td", {}, text(value)))))));
  },
};
