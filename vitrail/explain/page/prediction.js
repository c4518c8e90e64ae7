// SPDX-License-Identifier: Apache-2.0
// Sections 7 to 11: the prediction, why, what if, the gradient, and texts.
const without = () => [paragraph("missing.classifier")];
const methodName = (method) => (texts[language][`method.${method}`] ? text(`method.${method}`) : method);

const predictionSection = {
  id: "prediction",
  uses: [],
  show() {
    if (!manifest.prediction) return [...without(), has("pooled") ? slice("pooled[0, :6]", "pooled", [0],
      firstIndices(6, array("pooled").shape.at(-1)), (_, c) => [0, c]) : null];
    const {top, probability} = manifest.prediction, is = probability === "none" ? "logit" : "probability";
    return [
      shapes(["pooled", array("pooled").shape], ["logits", [1, model.classes]]),
      formula("<mi>p</mi><mo>=</mo><mi>softmax</mi><mo>(</mo><mi>W</mi><mi>h</mi><mo>+</mo><mi>b</mi><mo>)</mo>"),
      bars(top.map((each) => ({name: bdi(className(each.class)), value: each[is],
        label: element("span", {}, plain(each[is], 4), " · ", number("logits", [0, each.class]))})),
      is === "probability" ? {max: 1} : {}),
      paragraph("prediction.bars", {activation: probability}),
      top.length > 1 ? paragraph("prediction.margin", {margin: top[0].logit - top[1].logit}) : null,
      claims("class_head", "probabilities_sum"),
      code(model.pool === "avg" ? `x = x[:, ${model.prefix}:].mean(dim=1)` : "x = norm(x)[:, 0]", "logits = head(x)"),
    ];
  },
};

const whySection = {
  id: "why",
  uses: [],
  show() {
    if (!manifest.attributions) return without();
    const found = manifest.attributions.filter(({method}) => has(`explain.attribution.${method}`));
    const sorted = [...found].sort((a, b) => a.deletion - b.deletion);
    const lines = (kind) => manifest.attributions.map(({method}) => ({name: methodName(method),
      values: array(`explain.${kind}.${method}`).values}));
    const signed = (values) => rangeOf(values)[0] < 0;
    return [
      element("p", {}, text("why.of"), " ", bdi(className(manifest.prediction.class))),
      element("p", {class: "warning"}, text("why.warning")),
      element("div", {class: "figures"}, sorted.map(({method, deletion, insertion}) => {
        const {values} = array(`explain.attribution.${method}`);
        return element("div", {}, patchMap(methodName(method), values, {signed: signed(values)}),
          element("p", {class: "areas"}, text("why.areas", {deletion, insertion})));
      })),
      chart(text("why.deletion"), lines("deletion"), {x: text("why.removed"), from: "0 %", to: "100 %"}),
      chart(text("why.insertion"), lines("insertion"), {x: text("why.inserted"), from: "0 %", to: "100 %"}),
      claims("completeness"),
    ];
  },
};

const whatIfSection = {
  id: "whatif",
  uses: ["token", "block", "head"],
  show() {
    if (!manifest.prediction) return without();
    const removed = "explain.attribution.leave_one_out", ablation = "explain.ablation.heads";
    const patch = Math.max(0, state.token - model.prefix), [rows, columns] = model.grid;
    return [
      has(removed) ? element("div", {class: "figures"}, patchMap(text("whatif.patches"), array(removed).values,
        {signed: true, token: "token"}), element("p", {}, text("whatif.patch", {token: tokenName(patch + model.prefix)}),
        " ", number(removed, [Math.floor(patch / columns), patch % columns]))) : paragraph("whatif.left_out"),
      has(ablation) ? matrixMap(text("whatif.heads"), array(ablation).values, model.depth, model.heads,
        {signed: true, axes: text("whatif.axes"), rowName: blockName}) : null,
      has(ablation) ? element("p", {}, text("whatif.head", {block: state.block, head: state.head}), " ",
        number(ablation, [state.block, state.head])) : null,
    ];
  },
};

const gradientSection = {
  id: "gradient",
  uses: ["block"],
  show() {
    if (!manifest.gradients) return without();
    const {values, parameters} = manifest.gradients;
    // Modules that pass a value on have its gradient: each is shown once.
    const top = (list, count) => list.filter(({norm: size}, i) => typeof size === "number" &&
      list.findIndex((other) => other.norm === size) === i).sort((a, b) => b.norm - a.norm).slice(0, count);
    const rowsOf = (list) => list.map(({name, norm: value}) => ({name, value}));
    const stream = values.filter(({name}) => name === "embedded" || /^blocks\.\d+$/.test(name));
    const inBlock = values.filter(({name}) => name.startsWith(`blocks.${state.block}.`));
    return [
      formula("<mfrac><mrow><mo>∂</mo><msub><mi>logit</mi><mi>c</mi></msub></mrow><mrow><mo>∂</mo><mi>w</mi></mrow></mfrac>"),
      element("p", {}, text("gradient.of"), " ", bdi(className(manifest.gradients.class))),
      element("h3", {}, text("gradient.parameters")), bars(rowsOf(top([...parameters], 12))),
      element("h3", {}, text("gradient.stream")), bars(rowsOf(stream)),
      element("h3", {}, text("gradient.block", {block: state.block})), bars(rowsOf(top(inBlock, 12))),
      claims("finite_difference"),
      code("logits[0, c].backward()", "blocks[0].attn.qkv.weight.grad.norm()"),
    ];
  },
};

const textSection = {
  id: "texts",
  uses: [],
  suits: () => Boolean(manifest.texts),
  show() {
    const {rows, probability} = manifest.texts;
    return [
      formula("<mi>logit</mi><mo>=</mo><mi>scale</mi><mo>·</mo><mi>cos</mi><mo>(</mo><mi>image</mi><mo>,</mo><mi>text</mi>" +
        "<mo>)</mo><mo>+</mo><mi>bias</mi>"),
      element("table", {class: "data"}, element("caption", {}, text("texts.table", {activation: probability})),
        element("thead", {}, element("tr", {}, ["texts.text", "texts.cosine", "texts.logit", "texts.probability"].map((key) =>
          element("th", {scope: "col"}, text(key))))),
        element("tbody", {}, [...rows].sort((a, b) => b.logit - a.logit).map((each) => element("tr", {},
          element("th", {scope: "row"}, bdi(each.text)), [each.cosine, each.logit, each.probability].map((value) =>
            element("td", {}, plain(value))))))),
      claims("text_logits"),
    ];
  },
};
