// SPDX-License-Identifier: Apache-2.0
// The sections of Segment Anything.
const masksOf = () => array("low_res_masks").shape[1];
const cellName = (cell) => text("token.patch", {row: Math.floor(cell / model.grid[1]), column: cell % model.grid[1]});

const samImageSection = {
  id: "sam_image",
  uses: [],
  show() {
    const canvas = element("canvas", {class: "map", role: "img", "aria-label": text("sam_image.prompt")});
    const photo = new Image();
    photo.addEventListener("load", () => {
      const scale = photo.naturalWidth / manifest.image.width, context = canvas.getContext("2d");
      Object.assign(canvas, {width: photo.naturalWidth, height: photo.naturalHeight});
      context.drawImage(photo, 0, 0);
      context.lineWidth = 3;
      for (const {x, y, label} of manifest.prompt.points ?? []) {
        context.fillStyle = label ? "#1b5fc1" : "#b3261e";
        context.strokeStyle = "#fff";
        context.beginPath();
        context.arc(x * scale, y * scale, 8, 0, 2 * Math.PI);
        context.fill();
        context.stroke();
      }
      const box = manifest.prompt.box?.map((value) => value * scale);
      context.strokeStyle = "#1b5fc1";
      if (box) context.strokeRect(box[0], box[1], box[2] - box[0], box[3] - box[1]);
    });
    photo.src = manifest.image.thumbnail;
    return [
      element("div", {class: "figures"}, element("figure", {}, element("figcaption", {}, bdi(manifest.image.name),
        ` ${manifest.image.width}×${manifest.image.height}`), canvas),
      patchMap(text("sam_image.frame"), null, {token: "key"})),
      shapes(["images", [1, 3, ...model.input]], ["image_encoder", array("image_encoder").shape]),
    ];
  },
};

const samEmbeddingSection = {
  id: "sam_embedding",
  uses: ["key"],
  show() {
    const {values, shape: [, , , width]} = array("image_encoder"), cell = Math.max(0, state.key - model.prefix);
    const at = (i) => values.subarray(i * width, (i + 1) * width);
    const similar = Float32Array.from({length: model.patches}, (_, i) => cosine(at(cell), at(i)));
    return [
      element("div", {class: "figures"},
        patchMap(text("sam_embedding.similar", {cell: cellName(cell)}), similar, {signed: true, token: "key"})),
      slice(`image_encoder[0, ${Math.floor(cell / model.grid[1])}, ${cell % model.grid[1]}, :6]`, "image_encoder", [0],
        firstIndices(width, 6), (_, c) => [0, Math.floor(cell / model.grid[1]), cell % model.grid[1], c]),
      claims("sam_norm_2d"),
    ];
  },
};

const samTokenSection = {
  id: "sam_tokens",
  uses: ["token"],
  show() {
    const name = "prompt_encoder.sparse_embeddings", first = model.prefix - array(name).shape[1];
    return [
      shapes(["sparse_embeddings", array(name).shape], ["tokens", [1, model.prefix, model.width]]),
      element("ol", {class: "list"}, model.special.map((_, token) => element("li",
        token === state.token ? {class: "chosen"} : {}, element("span", {}, `${token}: ${tokenName(token)}`),
        token >= first ? slice(`sparse_embeddings[0, ${token - first}, :6]`, name, [0], firstIndices(model.width, 6),
          (__, c) => [0, token - first, c]) : null))),
      claims("sam_tokens"),
      code("tokens = torch.cat([iou_token, mask_tokens, sparse_embeddings], dim=1)"),
    ];
  },
};

// The weights of a head between a token and all positions of the image, or between tokens.
function samWeights(layerName, head, token) {
  const {values, shape: [, , queries, keys]} = array(`${layerName}.weights`);
  const at = (query, key) => values[(head * queries + query) * keys + key];
  if (queries < model.patches) return {of: Float32Array.from({length: keys}, (_, key) => at(token, key)), keys};
  return {of: Float32Array.from({length: queries}, (_, query) => at(query, token)), keys: queries};
}

const samAttentionSection = {
  id: "sam_attention",
  uses: ["block", "head", "token", "key"],
  show() {
    const {name, weights: extents} = model.layers[state.block], token = Math.min(state.token, model.prefix - 1);
    const short = name.replace("mask_decoder.transformer.", ""), {of, keys} = samWeights(name, state.head, token);
    const toImage = keys === model.patches, fromImage = extents[2] === model.patches;
    const cell = Math.max(0, state.key - model.prefix), weights = `${name}.weights`;
    const maps = toImage ? heads.map((head) => patchMap(text("sam_attention.head", {head}),
      samWeights(name, head, token).of, {small: true})) : null;
    return [
      element("p", {}, text(fromImage ? "sam_attention.image" : toImage ? "sam_attention.tokens" : "sam_attention.self",
        {layer: short, token: tokenName(token), head: state.head})),
      has(`${name}.q`) ? shapes(["tokens", [1, model.prefix, model.width]], ["q", array(`${name}.q`).shape],
        ["weights", extents]) : shapes(["weights", extents]),
      toImage ? element("div", {class: "figures"}, patchMap(short, of, {token: "key"}), maps) :
        bars([...of].map((value, i) => ({name: tokenName(i), value})), {max: 1}),
      toImage ? element("p", {}, text("block.weight_of", {key: cellName(cell)}), " ", number(weights, fromImage
        ? [0, state.head, cell, token] : [0, state.head, token, cell])) : null,
      claims("sam_downsampled", "sam_softmax", "sam_mlp"),
      code("q, k, v = q_proj(tokens), k_proj(image), v_proj(image)", "q, k, v = separate_heads(q), …",
        "out = recombine_heads((q @ k.transpose(-2, -1) / sqrt(d)).softmax(-1) @ v)", "tokens = tokens + out_proj(out)"),
    ];
  },
};

const samMaskSection = {
  id: "sam_masks",
  uses: ["key"],
  show() {
    const {values, shape: [, count, height, width]} = array("low_res_masks"), scale = height / model.grid[0];
    const cell = Math.max(0, state.key - model.prefix), y = Math.floor(cell / model.grid[1]) * scale;
    const x = cell % model.grid[1] * scale, upscaled = "mask_decoder.output_upscaling", size = height * width;
    const pictures = Array.from({length: count}, (_, mask) => {
      const of = values.subarray(mask * size, (mask + 1) * size), canvas = paintCells(of, height, width, {signed: true});
      Object.assign(canvas, {className: "map"});
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", text("sam_masks.mask", {mask}));
      return element("figure", {}, element("figcaption", {}, text("sam_masks.mask", {mask}), ", ",
        text("sam_masks.iou"), " ", number("iou_predictions", [0, mask])), canvas, legend(rangeOf(of), true));
    });
    const vector = array("mask_decoder.output_hypernetworks_mlps.0").values;
    const parts = has(upscaled) && [...vector].map((weight, i) => ({name: `h[${i}] · u[${i}]`,
      value: weight * (valueAt(upscaled, [0, y, x, i]) ?? NaN)}));
    return [
      formula("<msub><mi>m</mi><mrow><mi>y</mi><mo>,</mo><mi>x</mi></mrow></msub><mo>=</mo><munder><mo>∑</mo><mi>c</mi>" +
        "</munder><msub><mi>h</mi><mi>c</mi></msub><msub><mi>u</mi><mrow><mi>y</mi><mo>,</mo><mi>x</mi><mo>,</mo><mi>c</mi>" +
        "</mrow></msub>"),
      element("div", {class: "figures"}, pictures),
      parts ? terms(text("sam_masks.terms", {x, y}), parts, number("low_res_masks", [0, 0, y, x])) : null,
      claims("sam_mask_product"),
    ];
  },
};

const samSections = [samImageSection, samEmbeddingSection, samTokenSection, samAttentionSection, samMaskSection];
