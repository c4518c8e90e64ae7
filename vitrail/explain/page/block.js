// SPDX-License-Identifier: Apache-2.0
// Section 4: one block, step by step.  The residual stream is the spine, and the branches read it and add to it.
const step = (title, ...content) => element("li", {class: "step"}, element("h4", {}, title), content);
const firstIndices = (count, limit) => [...Array(Math.min(count, limit)).keys()];

function vectorOf(name, index, count = 6) {
  const shown = firstIndices(count, 6);
  return slice(`${name}[${[...index, ":6"].join(", ")}]`, name, [0], shown, (_, c) => [...index, c]);
}

// The place of one element in each layout of the queries.
function layouts({block, head, token, channel}) {
  const flat = head * model.head_dim + channel, value = () => number(layer(block, "q"), [0, head, token, channel]);
  const rows = [
    ["qkv", [1, model.tokens, 3 * model.heads * model.head_dim], [0, token, flat]],
    ["reshape", [1, model.tokens, 3, model.heads, model.head_dim], [0, token, 0, head, channel]],
    ["permute(2, 0, 3, 1, 4)", [3, 1, model.heads, model.tokens, model.head_dim], [0, 0, head, token, channel]],
    ["q", [1, model.heads, model.tokens, model.head_dim], [0, head, token, channel]],
  ];
  return element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": text("block.layouts")},
    element("table", {class: "data"}, element("caption", {}, text("block.layouts")),
      element("thead", {}, element("tr", {}, ["block.layout", "block.shape", "block.index"].map((key) =>
        element("th", {scope: "col"}, text(key))))),
      element("tbody", {}, rows.map(([name, extents, index]) => element("tr", {},
        element("th", {scope: "row"}, name), element("td", {}, `[${extents.join(", ")}]`),
        element("td", {}, `[${index.join(", ")}]`))))),
    element("p", {}, text("block.same_value"), " ", value()));
}

function scoreTerms({block, head, token, key}) {
  const q = row(layer(block, "q"), token, head), k = row(layer(block, "k"), key, head);
  if (!q || !k) return null;
  const list = [...q].map((x, i) => ({name: `q[${i}] · k[${i}] · ${plain(model.scale, 4)}`, value: x * k[i] * model.scale}));
  const bias = row(layer(block, "bias"), token, head);
  if (bias) list.push({name: text("block.bias"), value: bias[key]});
  return terms(text("block.score_terms", {token: tokenName(token), key: tokenName(key)}), list,
    number(layer(block, "scores"), [0, head, token, key]));
}

function contextTerms({block, head, token, channel}) {
  const weights = derivedRow(layer(block, "weights"), [0, head, token]);
  if (!weights || manifest.tensors[layer(block, "v")].rows) return null;
  const list = [...weights].map((weight, key) => ({name: `${tokenName(key)}: ${plain(weight, 3)} · v`,
    value: weight * row(layer(block, "v"), key, head)[channel]}));
  return terms(text("block.context_terms", {channel}), list, number(layer(block, "context"), [0, head, token, channel]));
}

const attendedPatches = (values) => values.subarray(model.prefix);

function mostAttended({block, head, token}, weights) {
  const of = (key) => [tokenName(key), " ", number(layer(block, "weights"), [0, head, token, key])];
  const patch = model.prefix + argmax(attendedPatches(weights)), key = argmax(weights);
  return element("p", {}, text("block.most_attended"), " ", of(key), key === patch ? "" : [", ", of(patch)]);
}

function attentionSteps(at) {
  const {block, head, token, key} = at, weights = derivedRow(layer(block, "weights"), [0, head, token]);
  const tokens3 = firstIndices(model.tokens, 3), channels3 = firstIndices(model.head_dim, 3);
  const corner = (part) => slice(`${part}[0, ${head}, :3, :3]`, layer(block, part), tokens3,
    part === "scores" ? tokens3 : channels3, (r, c) => [0, head, r, c]);
  const special = weights ? [...weights.subarray(0, model.prefix)].map((value, i) => ({name: tokenName(i), value})) : [];
  return [
    step(text("block.qkv"), layouts(at), element("div", {class: "figures"}, corner("q"), corner("k"),
      slice(`k.transpose(-2, -1)[0, ${head}, :3, :3]`, layer(block, "k"), channels3, tokens3, (r, c) => [0, head, c, r]),
      slice(`q[0, :, :3, ${at.channel}]`, layer(block, "q"), firstIndices(model.heads, 6), tokens3,
        (r, c) => [0, r, c, at.channel])),
    claims("qkv_layouts")),
    step(text("block.scores"), formula("<mi>s</mi><mo>=</mo><mfrac><mrow><mi>q</mi><msup><mi>k</mi><mo>⊤</mo></msup>" +
      "</mrow><msqrt><mi>d</mi></msqrt></mfrac>"), shapes(["scores", [1, model.heads, model.tokens, model.tokens]]),
    corner("scores"), scoreTerms(at), claims("scale_variance")),
    step(text("block.softmax"), formula("<msub><mi>a</mi><mrow><mi>i</mi><mi>j</mi></mrow></msub><mo>=</mo><mfrac>" +
      "<msup><mi>e</mi><msub><mi>s</mi><mrow><mi>i</mi><mi>j</mi></mrow></msub></msup><mrow><munder><mo>∑</mo><mi>m</mi>" +
      "</munder><msup><mi>e</mi><msub><mi>s</mi><mrow><mi>i</mi><mi>m</mi></mrow></msub></msup></mrow></mfrac>"),
    weights ? element("div", {class: "figures"},
      patchMap(text("block.attends", {token: tokenName(token), head}), attendedPatches(weights), {token: "key"}),
      special.length ? bars(special, {max: 1}) : null) : paragraph("missing.value"),
    weights ? mostAttended(at, weights) : null,
    element("p", {}, text("block.weight_of", {key: tokenName(key)}), " ",
      number(layer(block, "weights"), [0, head, token, key])), claims("softmax_rows", "mask_excludes")),
    step(text("block.context"), shapes(["context", [1, model.heads, model.tokens, model.head_dim]],
      ["merged", [1, model.tokens, model.heads * model.head_dim]]), contextTerms(at),
    vectorOf(layer(block, "merged"), [0, token], model.width), claims("merge_restores")),
    step(text("block.update1"), vectorOf(`blocks.${block}.drop_path1`, [0, token], model.width)),
  ];
}

function normStep({block, token}, name) {
  const input = row(name === "norm1" ? streamBefore(block) : `blocks.${block}.residual1`, token);
  if (!known(`blocks.${block}.${name}`)) return step(text(`block.${name}`), paragraph("missing.value"));
  const moments = input && standardised(input);
  return step(text(`block.${name}`), formula("<mi>y</mi><mo>=</mo><mi>γ</mi><mo>⊙</mo><mfrac><mrow><mi>x</mi><mo>−</mo>" +
    "<mi>μ</mi></mrow><msqrt><mrow><msup><mi>σ</mi><mn>2</mn></msup><mo>+</mo><mi>ε</mi></mrow></msqrt></mfrac>" +
    "<mo>+</mo><mi>β</mi>"),
  moments ? element("p", {}, text("block.moments", {mean: moments.mean, std: moments.std})) : paragraph("missing.value"),
  vectorOf(`blocks.${block}.${name}.weight`, [], model.width), vectorOf(`blocks.${block}.${name}.bias`, [], model.width),
  vectorOf(`blocks.${block}.${name}`, [0, token], model.width), name === "norm1" ? claims("layer_norm") : null);
}

function mlpSteps({block, token}) {
  const name = `blocks.${block}.mlp.act`, hidden = row(name, token);
  const top = hidden && [...hidden.keys()].sort((a, b) => hidden[b] - hidden[a]).slice(0, 8);
  return [
    step(text("block.mlp"), model.hidden ? shapes(["norm2", [1, model.tokens, model.width]],
      ["mlp.act", [1, model.tokens, model.hidden]], ["mlp.fc2", [1, model.tokens, model.width]]) : null,
    element("p", {}, text("block.activation", {activation: model.activation})),
    top ? element("table", {class: "slice"}, element("caption", {}, text("block.neurons")), element("tbody", {},
      element("tr", {}, top.map((i) => element("th", {scope: "col"}, String(i)))),
      element("tr", {}, top.map((i) => element("td", {}, number(name, [0, token, i])))))) :
      paragraph(has(name) ? "missing.token" : "missing.value"),
    claims("mlp_widths", "mlp_is_patch", "mlp_per_token")),
    step(text("block.update2"), vectorOf(`blocks.${block}.drop_path2`, [0, token], model.width)),
  ];
}

const blockSection = {
  id: "block",
  uses: ["block", "head", "token", "key", "channel"],
  show() {
    const at = state, {block, token} = at, branch = (title, steps) =>
      element("li", {class: "branch"}, element("h3", {}, title), element("ol", {class: "steps"}, steps));
    const stream = (name, caption) => element("li", {class: "stream"}, element("h3", {}, caption),
      vectorOf(name, [0, token], model.width));
    return [
      paragraph(model.norm_first ? "block.pre_norm" : "block.post_norm"),
      element("ol", {class: "spine"},
        stream(streamBefore(block), text("block.input", {block})),
        branch(text("block.attention"), model.norm_first ? [normStep(at, "norm1"), ...attentionSteps(at)]
          : [...attentionSteps(at), normStep(at, "norm1")]),
        stream(`blocks.${block}.residual1`, text("block.residual1")),
        branch("MLP", model.norm_first ? [normStep(at, "norm2"), ...mlpSteps(at)] : [...mlpSteps(at), normStep(at, "norm2")]),
        stream(`blocks.${block}`, text("block.output", {block}))),
      claims("residual_keeps"),
      code("qkv = self.qkv(self.norm1(x)).reshape(B, N, 3, H, d).permute(2, 0, 3, 1, 4)", "q, k, v = qkv.unbind(0)",
        "a = (q @ k.transpose(-2, -1) * d ** -0.5).softmax(dim=-1)",
        "x = x + self.proj((a @ v).transpose(1, 2).reshape(B, N, C))",
        "x = x + self.fc2(self.act(self.fc1(self.norm2(x))))"),
    ];
  },
};
