// SPDX-License-Identifier: Apache-2.0
// The sections of a training run.
const {training} = manifest;
const keptName = (kept) => text("run.epoch", {epoch: training.epochs[kept]});
const followedName = (image) => training.images[image].name;
const allKept = () => training.epochs.map((_, kept) => kept);

// The values of a kept model and the selected image, for a block.
function ofKept(name, kept, block) {
  const {values, shape: [, images, depth, count]} = array(name), begin = ((kept * images + state.image) * depth + block) * count;
  return values.subarray(begin, begin + count);
}

// The axes of a matrix with a row for each kept model.
const keptAxes = (columns) => text("run.axes", {from: training.epochs[0], to: training.epochs.at(-1), columns});

const curveSection = {
  id: "run",
  uses: [],
  show() {
    const quantities = [...new Set(training.curves.map(({quantity}) => quantity))], to = training.epochs.at(-1);
    return [
      element("p", {}, text("run.facts", {objective: training.objective, epochs: to, kept: training.epochs.length})),
      quantities.map((quantity) => chart(quantity, training.curves.filter((curve) => curve.quantity === quantity)
        .map(({event, epochs, values}) => ({name: text(`run.${event}`), values, at: epochs})),
      {x: text("run.epochs"), from: 0, to})),
    ];
  },
};

const followedSection = {
  id: "followed",
  uses: ["image"],
  show() {
    const last = model.depth - 1, classes = has("training.lens.class");
    const figures = training.images.map((image, i) => element("figure", {class: "small"},
      element("img", {src: image.thumbnail, alt: image.name, class: i === state.image ? "chosen" : ""}),
      element("figcaption", {}, bdi(image.name), image.label >= 0 ? ": " : "", image.label >= 0 ? bdi(className(image.label)) : "")));
    const cell = (kept, i) => element("td", {}, bdi(className(valueAt("training.lens.class", [kept, i, last]))), " · ",
      number("training.lens.probability", [kept, i, last]));
    return [
      element("div", {class: "figures"}, figures),
      classes ? element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": text("followed.table")},
        element("table", {class: "data"}, element("caption", {}, text("followed.table")),
          element("thead", {}, element("tr", {}, element("td"), allKept().map((kept) => element("th", {scope: "col"}, keptName(kept))))),
          element("tbody", {}, training.images.map((image, i) => element("tr", i === state.image ? {class: "chosen"} : {},
            element("th", {scope: "row"}, bdi(image.name)), allKept().map((kept) => cell(kept, i))))))) : null,
    ];
  },
};

const courseAttentionSection = {
  id: "course_attention",
  uses: ["image", "block", "kept"],
  show() {
    const of = (kept) => ofKept("training.attention", kept, state.block), chosen = of(state.kept), most = argmax(chosen);
    return [
      paragraph(model.prefix > 0 ? "course_attention.class" : "course_attention.mean", {block: state.block}),
      element("div", {class: "figures"}, patchMap(keptName(state.kept), chosen, {image: state.image}),
        allKept().map((kept) => patchMap(keptName(kept), of(kept), {small: true, image: state.image}))),
      element("p", {}, text("course_attention.most", {patch: tokenName(model.prefix + most)}), " ",
        number("training.attention", [state.kept, state.image, state.block, most])),
    ];
  },
};

const courseLensSection = {
  id: "course_lens",
  uses: ["image", "kept"],
  suits: () => has("training.lens.class"),
  show() {
    const count = training.images.length, {values} = array("training.lens.probability");
    const rows = Float32Array.from({length: training.epochs.length * model.depth}, (_, i) =>
      values[(Math.floor(i / model.depth) * count + state.image) * model.depth + i % model.depth]);
    const {label} = training.images[state.image];
    return [
      label >= 0 ? element("p", {}, text("course_lens.label"), " ", bdi(className(label))) : paragraph("course_lens.best"),
      matrixMap(text("course_lens.matrix"), rows, training.epochs.length, model.depth, {axes: keptAxes(text("course_lens.blocks")), rowName: keptName}),
      element("h3", {}, keptName(state.kept)),
      bars(blocks.map((block) => ({name: blockName(block),
        value: valueAt("training.lens.probability", [state.kept, state.image, block]),
        label: element("span", {}, number("training.lens.probability", [state.kept, state.image, block]), " · ",
          bdi(className(valueAt("training.lens.class", [state.kept, state.image, block]))))})), {max: 1}),
    ];
  },
};

const middle = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

const courseNormSection = {
  id: "course_norms",
  uses: ["image", "block"],
  show() {
    const rows = allKept().map((kept) => ofKept("training.norms", kept, state.block));
    const special = model.special.map((_, token) => ({name: tokenName(token), values: rows.map((norms) => norms[token])}));
    const patches = rows.map((norms) => norms.subarray(model.prefix)), at = training.epochs;
    const lines = [{name: text("course_norms.median"), values: patches.map(middle)},
      {name: text("course_norms.max"), values: patches.map((norms) => rangeOf(norms)[1])}, ...special.slice(0, 1)];
    return [
      matrixMap(text("course_norms.matrix", {block: state.block}), Float32Array.from(rows.flatMap((row) => [...row])),
        rows.length, model.tokens, {axes: keptAxes(text("course_norms.tokens")),
          rowName: keptName, columnName: tokenName}),
      chart(text("course_norms.chart", {block: state.block}), lines.map((line) => ({...line, at})),
        {x: text("run.epochs"), from: at[0], to: at.at(-1)}),
    ];
  },
};

function flipRow({name, label, thumbnail, predictions}) {
  return element("li", {class: "flip"}, element("img", {src: thumbnail, alt: ""}), element("div", {},
    element("p", {}, bdi(name), ": ", bdi(className(label))),
    element("ol", {class: "predictions"}, predictions.map((predicted, kept) => element("li",
      {class: predicted === label ? "right" : "wrong"}, `${keptName(kept)}: `, bdi(className(predicted)),
      predicted === label ? " ✓" : " ✗")))));
}

const flipSection = {
  id: "flips",
  uses: [],
  suits: () => Boolean(training?.flips),
  show() {
    const {images, changed, steps, rows} = training.flips;
    const line = ({right, gained, lost}, kept) => element("tr", {}, element("th", {scope: "row"}, keptName(kept)),
      element("td", {}, `${plain(100 * right / images, 1)} %`), [gained, lost].map((value) => element("td", {}, kept ? value : "–")));
    return [
      paragraph("flips.changed", {images, changed}),
      element("table", {class: "data"}, element("caption", {}, text("flips.table")),
        element("thead", {}, element("tr", {}, element("td"), ["flips.right", "flips.gained", "flips.lost"].map((key) =>
          element("th", {scope: "col"}, text(key))))), element("tbody", {}, steps.map(line))),
      rows.length ? element("h3", {}, text("flips.images", {count: rows.length})) : null,
      element("ul", {class: "flips"}, rows.map(flipRow)),
    ];
  },
};

const trainingSections = [curveSection, followedSection, courseAttentionSection, courseLensSection, courseNormSection,
  flipSection];
