// SPDX-License-Identifier: Apache-2.0
// Sections 5 and 6: heads, and what changes from block to block.
const blocks = [...Array(model.depth).keys()], heads = [...Array(model.heads).keys()];

function headTile(block, head) {
  const weights = weightsRow(block, head, state.token), chosen = block === state.block && head === state.head;
  const canvas = weights ? paintCells(attendedPatches(weights), ...model.grid) : element("canvas");
  canvas.setAttribute("aria-hidden", "true");
  return element("button", {type: "button", "aria-pressed": String(chosen),
    "aria-label": text("heads.tile", {block, head}), onclick: () => select({block, head})}, canvas);
}

function statistics(head) {
  const of = (name) => number(`explain.heads.${name}`, [state.block, head]);
  return element("tr", {}, element("th", {scope: "row"}, String(head)), ["entropy", "distance", "special"].map((name) =>
    element("td", {}, of(name))));
}

const headSection = {
  id: "heads",
  uses: ["block", "head", "token"],
  show() {
    const maps = heads.map((head) => {
      const weights = weightsRow(state.block, head, state.token);
      return weights && patchMap(text("heads.map", {block: state.block, head}), attendedPatches(weights), {small: true});
    });
    const mean = new Float32Array(model.patches);
    for (const head of heads) {
      const weights = weightsRow(state.block, head, state.token);
      if (weights) attendedPatches(weights).forEach((value, i) => { mean[i] += value / model.heads; });
    }
    return [
      paragraph("heads.of", {token: tokenName(state.token), block: state.block}),
      maps.some(Boolean) ? element("div", {class: "figures"}, patchMap(text("heads.mean"), mean, {token: "token"}), maps)
        : paragraph("missing.token"),
      has("explain.heads.entropy") ? element("div", {class: "scroll", tabindex: "0", role: "region",
        "aria-label": text("heads.statistics", {block: state.block})},
      element("table", {class: "data"}, element("caption", {}, text("heads.statistics", {block: state.block})),
        element("thead", {}, element("tr", {}, ["heads.head", "heads.entropy", "heads.distance", "heads.special"].map(
          (key) => element("th", {scope: "col"}, text(key, {max: Math.log(model.tokens)}))))),
      element("tbody", {}, heads.map(statistics)))) : null,
      element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": text("heads.all")},
        element("table", {class: "sheet"}, element("caption", {}, text("heads.all")),
          element("thead", {}, element("tr", {}, element("td"), heads.map((head) =>
            element("th", {scope: "col"}, String(head))))),
          element("tbody", {}, blocks.map((block) => element("tr", {}, element("th", {scope: "row"}, String(block)),
            heads.map((head) => element("td", {}, headTile(block, head)))))))),
      claims("heads_differ"),
    ];
  },
};

const blockName = (block) => text("heads.block", {block});

// The norms of all tokens after each block.
function normMatrix() {
  const names = [model.first_input, ...blocks.map((block) => `blocks.${block}`)];
  const values = new Float32Array(names.length * model.tokens).fill(NaN);
  names.forEach((name, i) => {
    for (let token = 0; token < model.tokens; token += 1) {
      const stream = row(name, token);
      if (stream) values[i * model.tokens + token] = norm(stream);
    }
  });
  return matrixMap(text("depth.norms"), values, names.length, model.tokens, {axes: text("depth.norm_axes"),
    rowName: (row) => (row ? blockName(row - 1) : text("depth.input")), columnName: tokenName});
}

// For each block the mean over tokens of a function of the stream before, in the middle and after.
function perBlock(measure) {
  return blocks.map((block) => {
    let sum = 0, count = 0;
    for (let token = 0; token < model.tokens; token += 1) {
      const before = row(streamBefore(block), token), middle = row(`blocks.${block}.residual1`, token);
      const after = row(`blocks.${block}`, token), last = row(`blocks.${model.depth - 1}`, token);
      if (!before || !middle || !after || !last) continue;
      sum += measure({before, middle, after, last});
      count += 1;
    }
    return count ? sum / count : NaN;
  });
}

const length = (a, b) => {
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += (a[i] - b[i]) ** 2;
  return Math.sqrt(sum);
};

function lensTable() {
  if (!has("explain.lens.class")) return paragraph("missing.classifier");
  const lines = blocks.map((block) => {
    const best = valueAt("explain.lens.class", [block, 0]);
    return element("tr", block === state.block ? {class: "chosen"} : {}, element("th", {scope: "row"}, String(block)),
      element("td", {}, bdi(className(best))), element("td", {}, number("explain.lens.probability", [block, 0])),
      element("td", {}, number("explain.lens.target", [block])));
  });
  return element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": text("depth.lens")},
    element("table", {class: "data"}, element("caption", {}, text("depth.lens")),
      element("thead", {}, element("tr", {}, [text("depth.block"), text("depth.best"), text("depth.probability"),
        className(manifest.prediction.class)].map((name) => element("th", {scope: "col"}, bdi(name))))),
      element("tbody", {}, lines)));
}

// From which block on the class is the best one.
function firstBlock() {
  if (!has("explain.lens.class")) return null;
  const target = manifest.prediction.class, wrong = blocks.filter((b) => valueAt("explain.lens.class", [b, 0]) !== target);
  const from = wrong.length ? wrong.at(-1) + 1 : 0;
  return from === model.depth ? paragraph("depth.never", {name: className(target)})
    : paragraph("depth.first", {name: className(target), block: from});
}

// Tokens of the last block with more than twice the median norm.
function outliers() {
  const norms = [...Array(model.tokens).keys()].map((token) => row(`blocks.${model.depth - 1}`, token))
    .map((stream) => (stream ? norm(stream) : NaN));
  const sorted = norms.filter(Number.isFinite).sort((a, b) => a - b), median = sorted[Math.floor(sorted.length / 2)];
  const far = [...norms.keys()].filter((token) => norms[token] > 2 * median).sort((a, b) => norms[b] - norms[a]);
  const names = far.slice(0, 8).map((token) => `${tokenName(token)} (${plain(norms[token], 1)})`).join(", ");
  return far.length ? paragraph("depth.outliers", {count: far.length, median, names})
    : paragraph("depth.no_outliers", {median});
}

const depthSection = {
  id: "depth",
  uses: ["block"],
  show() {
    const update = (from, to) => perBlock((stream) => length(stream[to], stream[from]) / norm(stream[from]));
    const tokens = has("explain.lens.tokens") && array("explain.lens.tokens").values
      .subarray(state.block * model.tokens + model.prefix, (state.block + 1) * model.tokens);
    const axis = {x: text("depth.block"), from: 0, to: model.depth - 1};
    return [
      normMatrix(), outliers(),
      chart(text("depth.updates"), [{name: text("block.attention"), values: update("before", "middle")},
        {name: "MLP", values: update("middle", "after")}], axis),
      chart(text("depth.cosine"), [{name: text("depth.cosine_line"),
        values: perBlock(({after, last}) => cosine(after, last))}], axis),
      has("explain.cka") ? matrixMap(text("depth.cka"), array("explain.cka").values, model.depth, model.depth,
        {axes: text("depth.cka_axes"), rowName: blockName, columnName: blockName}) : null,
      lensTable(), firstBlock(),
      tokens ? element("div", {class: "figures"}, patchMap(text("depth.tokens", {block: state.block,
        name: className(manifest.prediction.class)}), tokens, {signed: true})) : null,
      claims("blocks_differ"),
    ];
  },
};
