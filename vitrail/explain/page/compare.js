// SPDX-License-Identifier: Apache-2.0
// A second model beside the first one, on the same image.
function modelRow(key, of) {
  return element("tr", {}, element("th", {scope: "row"}, text(key)), [model, manifest.compared].map((each) =>
    element("td", {}, of(each))));
}

function attentionOf(name, title, [rows, columns]) {
  const {values} = array(`explain.compared.attention.${name}`), canvas = paintCells(values, rows, columns);
  canvas.className = "map";
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", text("matrix.summary", {title, min: rangeOf(values)[0], max: rangeOf(values)[1], rows, columns}));
  return element("figure", {class: "fixed"}, element("figcaption", {}, bdi(title)), canvas, legend(rangeOf(values)),
    numbersOf(values, rows, columns));
}

const compareSection = {
  id: "compare",
  uses: [],
  suits: () => Boolean(manifest.compared),
  show() {
    const {compared} = manifest, titles = [model.name, compared.name];
    const tops = [manifest.prediction?.top.slice(0, 5).map((each) => ({name: className(each.class),
      probability: each.probability})), compared.top.map(({name, class: index, probability}) => ({
      name: name || text("class.index", {index}), probability}))];
    return [
      element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": text("compare.form_table")},
        element("table", {class: "data"}, element("thead", {}, element("tr", {}, element("td"),
        titles.map((title) => element("th", {scope: "col"}, bdi(title))))), element("tbody", {},
        modelRow("modules.parameters", (each) => shown(each.parameters)),
        modelRow("compare.flops", (each) => shown(each.flops / 1e9)),
        modelRow("compare.depth", ({depth, heads, width}) => text("compare.form", {depth, heads, width})),
        modelRow("compare.grid", ({grid}) => `${grid[0]} × ${grid[1]}`)))),
      element("h3", {}, text("compare.attention")),
      element("div", {class: "figures"}, attentionOf("first", model.name, model.grid),
        attentionOf("second", compared.name, compared.grid)),
      tops.map((top, i) => (top?.length ? [element("h3", {}, text("compare.classes"), " ", bdi(titles[i])),
        bars(top.map(({name, probability}) => ({name: bdi(name), value: probability})), {max: 1})] : null)),
      has("explain.compared.cka") ? matrixMap(text("compare.cka"), array("explain.compared.cka").values, model.depth,
        compared.depth, {axes: text("compare.cka_axes"), rowName: blockName, columnName: blockName}) : null,
    ];
  },
};
