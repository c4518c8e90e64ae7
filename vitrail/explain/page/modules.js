// SPDX-License-Identifier: Apache-2.0
// The last section: the module tree, and the parameters with their histograms.
function histogram({name, min, max, histogram: counts}) {
  const most = Math.max(...counts, 1);
  return element("figure", {class: "histogram"}, element("figcaption", {}, name),
    element("div", {class: "columns", role: "img",
      "aria-label": text("modules.histogram", {name, min, max, most: Math.max(...counts)})},
    counts.map((count) => Object.assign(element("span"), {style: `height: ${100 * count / most}%`}))),
    element("div", {class: "legend"}, element("span", {}, plain(min, 3)), element("span", {}, plain(max, 3))));
}

function parameterRow(parameter) {
  const holder = element("details", {class: "parameter"}, element("summary", {},
    element("span", {class: "name"}, parameter.name), ` [${parameter.shape.join(", ")}]`));
  holder.addEventListener("toggle", () => {
    if (!holder.open || holder.children.length > 1) return;
    holder.append(element("p", {}, text("modules.moments", parameter)), histogram(parameter));
  });
  return holder;
}

const moduleSection = {
  id: "modules",
  uses: [],
  show() {
    const counted = manifest.modules.filter(({parameters, path}) => parameters > 0 && (path.split(".").length <= 3 || path.startsWith("blocks.0.")));
    return [
      paragraph("modules.count", {parameters: model.parameters, bytes: 4 * model.parameters / 1e6}),
      model.flops ? paragraph("modules.flops", {flops: model.flops / 1e9}) : null,
      element("pre", {tabindex: "0", class: "tree"}, manifest.tree),
      element("details", {}, element("summary", {}, text("modules.table")),
        element("table", {class: "data"}, element("thead", {}, element("tr", {}, ["modules.path", "modules.type",
          "modules.parameters"].map((key) => element("th", {scope: "col"}, text(key))))),
        element("tbody", {}, counted.map(({path, type, parameters}) => element("tr", {},
          element("th", {scope: "row"}, path || type), element("td", {}, type), element("td", {}, shown(parameters))))))),
      element("details", {}, element("summary", {}, text("modules.histograms")), manifest.parameters.map(parameterRow)),
      claims("parameter_count", "fc1_spread"),
    ];
  },
};
