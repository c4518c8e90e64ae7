// SPDX-License-Identifier: Apache-2.0
// Sections 1 to 3: the image, its patches, and the tokens.
const imageSection = {
  id: "image",
  uses: ["token"],
  show() {
    const [height, width] = model.image, patch = Math.max(0, state.token - model.prefix);
    const top = Math.floor(patch / model.grid[1]) * model.patch[0], left = patch % model.grid[1] * model.patch[1];
    const {mean, std} = manifest.image, of = (list, c) => list[Math.min(c, list.length - 1)];
    const pixel = Array.from({length: model.channels}, (_, c) => {
      const value = valueAt("images", [0, c, top, left]);
      return element("tr", {}, element("th", {scope: "row"}, text(`channel.${model.channels === 3 ? c : "grey"}`)),
        element("td", {}, String(Math.round(255 * (value * of(std, c) + of(mean, c))))),
        element("td", {}, plain(of(mean, c), 3)), element("td", {}, plain(of(std, c), 3)),
        element("td", {}, number("images", [0, c, top, left])));
    });
    const original = element("img", {src: manifest.image.thumbnail, alt: text("image.original")});
    const seen = element("canvas", {class: "map", width: String(width), height: String(height), role: "img",
      "aria-label": text("image.input")});
    seen.getContext("2d").drawImage(inputCanvas(), 0, 0);
    return [
      element("div", {class: "figures"},
        element("figure", {}, element("figcaption", {}, bdi(manifest.image.name), ` ${manifest.image.width}×${
          manifest.image.height}`), original),
        element("figure", {}, element("figcaption", {}, text("image.input"), ` ${width}×${height}`), seen)),
      formula("<mi>x</mi><mo>=</mo><mfrac><mrow><mi>byte</mi><mo>/</mo><mn>255</mn><mo>−</mo><mi>mean</mi></mrow>" +
        "<mi>std</mi></mfrac>"),
      shapes(["images", [1, model.channels, height, width]]),
      element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": text("image.pixel", {x: left, y: top})},
        element("table", {class: "data"}, element("caption", {}, text("image.pixel", {x: left, y: top})),
          element("thead", {}, element("tr", {}, ["image.channel", "image.byte", "image.mean", "image.std", "image.value"]
            .map((key) => element("th", {scope: "col"}, text(key))))), element("tbody", {}, pixel))),
      code("x = transforms.functional.normalize(to_tensor(image), mean, std)[None]"),
    ];
  },
};

// The pixels of a patch in one channel after the other.
function patchPixels(patch) {
  const [height, width] = model.image, [ph, pw] = model.patch, {values} = array("images");
  const top = Math.floor(patch / model.grid[1]) * ph, left = patch % model.grid[1] * pw;
  const pixels = new Float32Array(model.channels * ph * pw);
  for (let i = 0; i < pixels.length; i += 1) {
    const c = Math.floor(i / (ph * pw)), y = Math.floor(i / pw) % ph, x = i % pw;
    pixels[i] = values[(c * height + top + y) * width + left + x];
  }
  return pixels;
}

const patchSection = {
  id: "patches",
  uses: ["token", "channel"],
  show() {
    const patch = Math.max(0, state.token - model.prefix), pixels = patchPixels(patch), [ph, pw] = model.patch;
    const [rows, columns] = model.grid, feature = Math.min(state.channel, model.width - 1);
    const filter = row("patch_embed.proj.weight", 0) && array("patch_embed.proj.weight").values
      .subarray(feature * pixels.length, (feature + 1) * pixels.length);
    const cells = paintCells(pixels, model.channels * ph, pw, {signed: true});
    Object.assign(cells, {className: "matrix tall"});
    cells.setAttribute("role", "img");
    cells.setAttribute("aria-label", text("patches.pixels", {patch, count: pixels.length}));
    const parts = filter && [...pixels].map((x, i) => ({
      name: `x[${Math.floor(i / (ph * pw))}, ${Math.floor(i / pw) % ph}, ${i % pw}] · w`, value: x * filter[i]}));
    const bias = has("patch_embed.proj.bias") ? array("patch_embed.proj.bias").values[feature] : 0;
    if (parts && bias) parts.push({name: text("patches.bias"), value: bias});
    const weights = filter && paintCells(filter, model.channels * ph, pw, {signed: true});
    if (weights) {
      weights.className = "matrix tall";
      weights.setAttribute("role", "img");
      weights.setAttribute("aria-label", text("patches.filter", {feature}));
    }
    return [
      element("div", {class: "figures"}, patchMap(text("patches.grid"), null, {token: "token"}),
        element("figure", {}, element("figcaption", {}, text("patches.pixels", {patch, count: pixels.length})), cells),
        weights ? element("figure", {}, element("figcaption", {}, text("patches.filter", {feature})), weights) : null),
      formula("<msub><mi>e</mi><mi>d</mi></msub><mo>=</mo><munder><mo>∑</mo><mrow><mi>c</mi><mo>,</mo><mi>y</mi>" +
        "<mo>,</mo><mi>x</mi></mrow></munder><msub><mi>W</mi><mrow><mi>d</mi><mo>,</mo><mi>c</mi><mo>,</mo><mi>y</mi>" +
        "<mo>,</mo><mi>x</mi></mrow></msub><msub><mi>p</mi><mrow><mi>c</mi><mo>,</mo><mi>y</mi><mo>,</mo><mi>x</mi>" +
        "</mrow></msub><mo>+</mo><msub><mi>b</mi><mi>d</mi></msub>"),
      shapes(["images", [1, model.channels, ...model.image]], ["patch_embed.proj", [1, model.width, rows, columns]],
        ["patch_embed", [1, model.patches, model.width]]),
      parts ? terms(text("patches.product", {patch, feature}), parts, number("patch_embed", [0, patch, feature])) : null,
      slice(`patch_embed[0, ${patch}, :6]`, "patch_embed", [patch], [0, 1, 2, 3, 4, 5].filter((i) => i < model.width),
        (r, c) => [0, r, c]),
      claims("conv_is_linear", "sequence_shape"),
      code(`proj = nn.Conv2d(${model.channels}, ${model.width}, kernel_size=${pw}, stride=${pw})`,
        "x = proj(images).flatten(2).transpose(1, 2)"),
    ];
  },
};

// The cosine of a position with all others, over the patches.
function positionMap() {
  if (!has("pos_embed")) return null;
  const {values, shape: [, count, width]} = array("pos_embed"), first = count - model.patches;
  if (first < 0) return null;
  const at = (patch) => values.subarray((first + patch) * width, (first + patch + 1) * width);
  const chosen = at(Math.max(0, state.token - model.prefix));
  return patchMap(text("tokens.positions", {token: tokenName(Math.max(state.token, model.prefix))}),
    Float32Array.from({length: model.patches}, (_, patch) => cosine(chosen, at(patch))),
    {signed: true, token: "token", overlay: false});
}

const tokenSection = {
  id: "tokens",
  uses: ["token"],
  show() {
    const shown = [...Array(Math.min(6, model.width)).keys()];
    return [
      element("p", {}, text("tokens.list", {tokens: model.tokens,
        special: model.special.length ? model.special.map((_, i) => tokenName(i)).join(", ") : text("tokens.none"),
        patches: model.patches})),
      shapes(["patch_embed", [1, model.patches, model.width]], ["embedded", [1, model.tokens, model.width]]),
      element("div", {class: "figures"}, positionMap()),
      element("p", {}, text(`positions.${model.positions || "none"}`)),
      slice(`embedded[0, ${state.token}, :6]`, "embedded", [state.token], shown, (r, c) => [0, r, c]),
      claims("patch_count", "learned_positions", "sinusoid_positions"),
      code(...(model.special.includes("class") ? ["x = torch.cat([cls_token.expand(len(x), -1, -1), x], dim=1)"] : []),
        ...(has("pos_embed") ? ["x = x + pos_embed"] : [])),
    ];
  },
};
