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

export function button(text, act, attributes = {}) {
  const result = element("button", {type: "button", ...attributes}, text);
  result.addEventListener("click", act);
  return result;
}

let fields = 0;

function labelled(label, input, ...more) {
  input.id = `field-${++fields}`;
  return element("div", {class: "field"}, element("label", {for: input.id}, label), input, ...more);
}

// A control with its label; `act` runs when it changes.
export function field(label, input, act) {
  input.addEventListener("change", act);
  return input.type === "checkbox" ? element("label", {class: "check"}, input, " " + label) : labelled(label, input);
}

// A slider that shows its number and acts while it is dragged.
export function slider(label, {min = 0, max, step = 1, value, shown = String}, act) {
  const input = element("input", {type: "range", min: String(min), max: String(max), step: String(step)});
  input.value = String(value);
  const output = element("output", {}, shown(input.value));
  let waiting = 0;
  input.addEventListener("input", () => {
    output.textContent = shown(input.value);
    clearTimeout(waiting);
    waiting = setTimeout(act, 60);
  });
  return {
    input,
    field: labelled(label, input, output),
    set(to) {
      input.value = String(to);
      output.textContent = shown(input.value);
    },
  };
}

// A place for a file, which is chosen or dropped there: act(file).
export function filePlace(text, act) {
  const input = element("input", {type: "file", accept: "image/*"}), name = element("span", {});
  const place = element("label", {class: "place"}, element("strong", {}, text), name, input);
  place.take = ([file]) => { if (file) act(file); };
  input.addEventListener("change", () => {
    place.take(input.files);
    input.value = "";  // the same file may be chosen again
  });
  return {field: place, set: (file) => { name.textContent = file ?? "Choose or drop a file"; }};
}

// One stop of the tabulator for the children of an element: arrow keys, Home and End go to the others.
export function arrows(container, act) {
  container.addEventListener("keydown", (event) => {
    const all = [...container.children], at = all.indexOf(document.activeElement);
    const next = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1}[event.key];
    if (at < 0 || next === undefined) return;
    event.preventDefault();
    const to = (next + all.length) % all.length;
    act(to);
    container.children[to].focus();
  });
}

// A row for each fact.
export function factsTable(facts) {
  const text = (value) => (Array.isArray(value) ? value.join(typeof value[0] === "number" ? " × " : ", ")
    : typeof value === "boolean" ? (value ? "yes" : "no") : String(value));
  return element("table", {class: "facts"}, element("tbody", {},
    ...Object.entries(facts).map(([key, value]) => element("tr", {},
      element("th", {scope: "row"}, key.replaceAll("_", " ")), element("td", {}, text(value))))));
}

export const percent = (probability) => `${(100 * probability).toFixed(1)} %`;

export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  element("a", {href: url, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
