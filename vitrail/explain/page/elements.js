// SPDX-License-Identifier: Apache-2.0
// Parts of the page.  Text is set as text, never as HTML.
function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== false && value !== undefined) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

const paragraph = (key, values) => element("p", {}, text(key, values));
const bdi = (name) => element("bdi", {}, name);  // a name whose direction of writing is its own

function plain(value, digits = 4) {
  if (typeof value !== "number" || Number.isNaN(value)) return String(value ?? "–").toLowerCase();
  return Number.isFinite(value) ? value.toFixed(digits) : value > 0 ? "inf" : "-inf";
}

// An element of an array or of a derived value, with the digits that are right.
function number(name, index) {
  if (!known(name)) return element("span", {class: "missing"}, "–");
  const value = valueAt(name, index), digits = digitsOf(name);
  if (value === undefined || digits < 0) return element("span", {class: "missing", title: text("missing.value")}, "–");
  const id = `${name}[${index.join(", ")}]`;
  return element("data", {"data-id": id, "data-digits": digits, value: String(value), title: id}, plain(value, digits));
}

// A fact of this model; null if it is not about this model.
function claim(id) {
  const found = manifest.claims.find((each) => each.id === id);
  return found ? element("p", {class: "claim", "data-claim": id}, text(`claim.${id}`, found.values)) : null;
}

function claims(...ids) {
  const shownClaims = ids.map(claim).filter(Boolean);
  return shownClaims.length ? element("div", {class: "notes"}, element("p", {class: "label"}, text("notes")), shownClaims) : null;
}

const code = (...lines) => element("details", {class: "code"}, element("summary", {}, text("pytorch")),
  element("pre", {tabindex: "0"}, lines.join("\n")));

// The constant MathML of a formula.
function formula(content) {
  const holder = element("div", {class: "formula"});
  holder.innerHTML = `<math displaystyle="true"><mrow>${content}</mrow></math>`;
  return holder;
}

const shape = (name, extents) => element("span", {class: "shape"}, `${name} [${extents.join(", ")}]`);
const shapes = (...pairs) => element("p", {class: "shapes"}, pairs.flatMap(([name, extents], i) =>
  [i ? element("span", {class: "arrow", "aria-hidden": "true"}, " → ") : null, shape(name, extents)]));

// A small table of elements: rows and columns are indices.
function slice(caption, name, rows, columns, indexOf) {
  return element("table", {class: "slice"}, element("caption", {}, caption),
    element("tbody", {}, rows.map((r) => element("tr", {}, columns.map((c) =>
      element("td", {}, number(name, indexOf(r, c))))))));
}

// A list of the terms of a sum, the longest first, and the sum.
function terms(title, list, sum) {
  const sorted = [...list].sort((a, b) => Math.abs(b.value) - Math.abs(a.value)), first = sorted.slice(0, 6);
  const rest = sorted.slice(6).reduce((total, {value}) => total + value, 0);
  return element("div", {class: "terms"}, element("p", {class: "label"}, title),
    element("ol", {}, first.map(({name, value}) => element("li", {}, element("span", {}, name),
      element("span", {class: "number"}, plain(value, 3)))),
    sorted.length > 6 ? element("li", {class: "rest"}, element("span", {}, text("terms.rest", {count: sorted.length - 6})),
      element("span", {class: "number"}, plain(rest, 3))) : null),
    element("p", {class: "sum"}, text("terms.sum"), " ", sum));
}

// Bars with names and numbers.
function bars(rows, {max = Math.max(...rows.map(({value}) => Math.abs(value) || 0), 1e-30)} = {}) {
  return element("ul", {class: "bars"}, rows.map(({name, value, label}) => element("li", {},
    element("span", {class: "name"}, name),
    element("span", {class: "bar", "aria-hidden": "true"},
      Object.assign(element("span", {class: value < 0 ? "fill negative" : "fill"}),
        {style: `width: ${Math.min(100, 100 * Math.abs(value) / max || 0)}%`})),
    element("span", {class: "number"}, label ?? plain(value)))));
}

function choice(label, value, count, name, nameOf = String) {
  const input = element("input", {type: "range", min: "0", max: String(count - 1), value: String(value),
    "aria-valuetext": nameOf(value), oninput: () => select({[name]: Number(input.value)})});
  return element("label", {class: "choice"}, element("span", {}, label), input, element("output", {}, nameOf(value)));
}
