// SPDX-License-Identifier: Apache-2.0
// What is selected, common to all sections and in the fragment of the address: a view can be linked.
const middlePatch = Math.floor(model.grid[0] / 2) * model.grid[1] + Math.floor(model.grid[1] / 2);
// What can be selected, with the number of its values.  Of Segment Anything blocks are attention layers, and tokens those
// of the decoder; of a training run `kept` is a kept model.
const kind = model.kind ?? "transformer";
const choices = {
  transformer: {block: model.depth, head: model.heads, token: model.tokens, channel: model.head_dim},
  segmentation: {block: model.depth, head: model.heads, token: model.prefix},
  training: {image: manifest.training?.images.length, block: model.depth, kept: manifest.training?.epochs.length},
}[kind];
const limits = {...choices, key: model.tokens};
const initial = {block: kind === "training" ? model.depth - 1 : 0, token: model.prefix > 0 ? 0 : middlePatch,
  key: model.prefix + middlePatch, kept: limits.kept - 1};
const state = {section: "", ...Object.fromEntries(Object.keys(limits).map((name) => [name, initial[name] ?? 0]))};
const listeners = [];

function readFragment() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const [name, limit] of Object.entries(limits)) {
    const value = Number(given.get(name) ?? NaN);
    if (Number.isInteger(value) && value >= 0 && value < limit) state[name] = value;
  }
  state.section = given.get("section") ?? state.section;
}

const fragment = (changes = {}) => {
  const {section, ...selection} = {...state, ...changes};
  return "#" + new URLSearchParams(section ? {section, ...selection} : selection);
};

// Changes the selection and shows it everywhere.
function select(changes) {
  const changed = Object.keys(changes).filter((name) => state[name] !== changes[name]);
  if (!changed.length) return;
  Object.assign(state, changes);
  history.replaceState(null, "", fragment());
  for (const listener of listeners) listener(changed);
}
