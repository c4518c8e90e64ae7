// SPDX-License-Identifier: Apache-2.0
// The texts of the page in the language that is chosen.
const texts = JSON.parse(document.getElementById("texts").textContent);
let language = manifest.language;

// A value in a sentence.
function shown(value) {
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en").replaceAll(",", "\u202f");
  if (Math.abs(value) >= 1e-3 && Math.abs(value) < 1e6) return String(Number(value.toPrecision(3)));
  const [digits, exponent] = value.toExponential(1).split("e");
  return `${digits}·10${[...String(Number(exponent))].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("")}`;
}

// The text of a key, with the values in the places {name}.
const text = (key, values = {}) =>
  texts[language][key].replace(/\{(\w+)\}/g, (_, name) => shown(values[name] ?? `{${name}}`));

const className = (index) => manifest.classes?.[index] ?? text("class.index", {index});

// The name of a token: a patch by its row and column.
function tokenName(token) {
  if (token >= model.prefix) {
    const patch = token - model.prefix;
    return text("token.patch", {row: Math.floor(patch / model.grid[1]), column: patch % model.grid[1]});
  }
  return text(`token.${model.special[token]}`, {index: token});
}
