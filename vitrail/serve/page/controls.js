// Elements of the page.

export function element(name, attributes = {}, ...children) {
  const result = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key in result && typeof value !== "string") result[key] = value;
    else result.setAttribute(key, value);
  }
  result.append(...children);
  return result;
}

// A labelled control that shows the view again when it changes.
export function control(state, label, input) {
  input.addEventListener("change", () => state.show());
  return element("label", {}, label + " ", input);
}

export const slider = (max, value) => element("input", {type: "range", min: "0", max: String(max), value: String(value)});
