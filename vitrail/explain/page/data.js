// SPDX-License-Identifier: Apache-2.0
// The arrays of the page: docs/design/explain.md.  Blobs are decompressed at the start, arrays converted when they are
// asked for.
const manifest = JSON.parse(document.getElementById("manifest").textContent);
const model = manifest.model;
const blobs = [];
const arrays = new Map();

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  return bytes;
}

async function readBlobs() {
  for (let i = 0; i < manifest.blobs; i += 1) {
    const node = document.getElementById(`blob-${i}`);
    const stream = new Blob([bytesOf(node.textContent)]).stream().pipeThrough(new DecompressionStream("gzip"));
    blobs.push(await new Response(stream).arrayBuffer());
    node.remove();
  }
}

// The value of each 16-bit pattern.
const halfValues = (() => {
  const values = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits += 1) {
    const exponent = (bits >> 10) & 31, fraction = bits & 1023;
    let value = exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15);
    if (exponent === 31) value = fraction ? NaN : Infinity;
    values[bits] = bits & 0x8000 ? -value : value;
  }
  return values;
})();

const product = (shape) => shape.reduce((a, b) => a * b, 1);

function decode({blob, offset, shape, dtype, scales, channels, rows}) {
  const stored = [...shape];
  if (rows) stored[stored.length - 2] = rows.length;
  const count = product(stored), columns = stored.at(-1), buffer = blobs[blob];
  if (dtype === "f32") return new Float32Array(buffer, offset, count);
  const values = new Float32Array(count);
  if (dtype === "f16") {
    const bits = new Uint16Array(buffer, offset, count);
    for (let i = 0; i < count; i += 1) values[i] = halfValues[bits[i]];
  } else if (dtype === "i8") {
    const integers = new Int8Array(buffer, offset, count), scale = new Float32Array(buffer, scales, count / columns);
    for (let i = 0; i < count; i += 1) values[i] = integers[i] * scale[Math.floor(i / columns)];
  } else {
    const bytes = new Uint8Array(buffer, offset, count), pixels = shape[2] * shape[3];
    for (let i = 0; i < count; i += 1) {
      const [scale, start] = channels[Math.floor(i / pixels) % shape[1]];
      values[i] = bytes[i] * scale + start;
    }
  }
  return values;
}

const has = (name) => name in manifest.tensors;

// {values, shape, place}: place maps a token to its row, of chosen rows alone; undefined: the token is not there.
function array(name) {
  if (!arrays.has(name)) {
    const entry = manifest.tensors[name];
    const place = entry.rows && new Map(entry.rows.map((row, i) => [row, i]));
    arrays.set(name, {values: decode(entry), shape: entry.shape, place});
  }
  return arrays.get(name);
}

// Row `token` of the last axis but one, of group `group` (a head); null: not in this file.
function row(name, token, group = 0) {
  if (!has(name)) return null;
  const {values, shape, place} = array(name), columns = shape.at(-1);
  const rows = place ? place.size : shape.at(-2), at = place ? place.get(token) : token;
  if (at === undefined) return null;
  const begin = (group * rows + at) * columns;
  return values.subarray(begin, begin + columns);
}

const dot = (a, b) => {
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += a[i] * b[i];
  return sum;
};
const norm = (a) => Math.sqrt(dot(a, a));
const cosine = (a, b) => dot(a, b) / (norm(a) * norm(b));

const streamBefore = (block) => (block === 0 ? model.first_input : `blocks.${block - 1}`);

// Derived values, a row at a time: each name with the function that gives the row of a token (and of a head).
const layer = (block, name) => `blocks.${block}.attn.${name}`;

function scoresRow(block, head, token) {
  const q = row(layer(block, "q"), token, head);
  if (!q || !has(layer(block, "k"))) return null;
  const scores = new Float32Array(model.tokens), bias = row(layer(block, "bias"), token, head);
  for (let key = 0; key < model.tokens; key += 1) {
    scores[key] = dot(q, row(layer(block, "k"), key, head)) * model.scale + (bias ? bias[key] : 0);
  }
  return scores;
}

function softmax(scores) {
  const max = scores.reduce((a, b) => Math.max(a, b), -Infinity), weights = scores.map((x) => Math.exp(x - max));
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((x) => x / sum);
}

const weightsRow = (block, head, token) => {
  const scores = scoresRow(block, head, token);
  return scores && softmax(scores);
};

function contextRow(block, head, token) {
  const weights = weightsRow(block, head, token), context = new Float32Array(model.head_dim);
  if (!weights || manifest.tensors[layer(block, "v")].rows) return null;
  for (let key = 0; key < model.tokens; key += 1) {
    const v = row(layer(block, "v"), key, head);
    for (let i = 0; i < context.length; i += 1) context[i] += weights[key] * v[i];
  }
  return context;
}

function mergedRow(block, token) {
  const parts = Array.from({length: model.heads}, (_, head) => contextRow(block, head, token));
  return parts.includes(null) ? null : Float32Array.from(parts.flatMap((part) => [...part]));
}

// Mean and standard deviation of a token, and the token without them.
function standardised(values) {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  const variance = values.reduce((a, b) => a + (b - mean) ** 2, 0) / values.length;
  return {mean, std: Math.sqrt(variance), values: values.map((x) => (x - mean) / Math.sqrt(variance + model.norm_eps))};
}

function normRow(block, name, token) {
  const input = row(name === "norm1" ? streamBefore(block) : `blocks.${block}.residual1`, token);
  if (!input) return null;
  const gamma = array(`blocks.${block}.${name}.weight`).values, beta = array(`blocks.${block}.${name}.bias`).values;
  return standardised(input).values.map((x, i) => x * gamma[i] + beta[i]);
}

function updateRow(block, name, token) {
  const middle = row(`blocks.${block}.residual1`, token);
  const other = row(name === "drop_path1" ? streamBefore(block) : `blocks.${block}`, token);
  if (!middle || !other) return null;
  return name === "drop_path1" ? middle.map((x, i) => x - other[i]) : other.map((x, i) => x - middle[i]);
}

const cache = new Map();  // rows of the selected block, token and head

// The row of a derived value; index: all indices of an element but the last one.
function derivedRow(name, index) {
  const key = `${name} ${index}`;
  if (!cache.has(key)) {
    if (cache.size > 200) cache.clear();
    const [, block, part] = name.match(/^blocks\.(\d+)\.(.*)$/);
    const kinds = {
      "attn.scores": () => scoresRow(+block, index[1], index[2]),
      "attn.weights": () => weightsRow(+block, index[1], index[2]),
      "attn.context": () => contextRow(+block, index[1], index[2]),
      "attn.merged": () => mergedRow(+block, index[1]),
      norm1: () => normRow(+block, "norm1", index[1]),
      norm2: () => normRow(+block, "norm2", index[1]),
      drop_path1: () => updateRow(+block, "drop_path1", index[1]),
      drop_path2: () => updateRow(+block, "drop_path2", index[1]),
    };
    cache.set(key, kinds[part]());
  }
  return cache.get(key);
}

const known = (name) => has(name) || name in manifest.derived;

// An element; undefined: not in this file.
function valueAt(name, index) {
  if (!has(name)) return name in manifest.derived ? derivedRow(name, index.slice(0, -1))?.[index.at(-1)] : undefined;
  const {values, shape, place} = array(name);
  let at = 0;
  for (let axis = 0; axis < shape.length; axis += 1) {
    const chosen = place && axis === shape.length - 2;
    const i = chosen ? place.get(index[axis]) : index[axis];
    if (i === undefined || i < 0 || (!chosen && i >= shape[axis])) return undefined;
    at = at * (chosen ? place.size : shape[axis]) + i;
  }
  return values[at];
}

// How many digits after the point are right, at most 4; below 0: none, not even the integer.
function digitsOf(name) {
  const error = (manifest.tensors[name] ?? manifest.derived[name]).max_error;
  if (typeof error !== "number") return -1;
  return error === 0 ? 4 : Math.min(4, Math.floor(-Math.log10(2 * error)));
}
