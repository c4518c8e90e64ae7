// SPDX-License-Identifier: Apache-2.0
// What is selected, common to all sections and in the fragment of the address: a view can be linked.
const middlePatch = Math.floor(model.grid[0] / 2) * model.grid[1] + Math.floor(model.grid[1] / 2);
// Of Segment Anything blocks are attention layers, and tokens those of the decoder; keys are positions of the image.
const limits = {block: model.depth, head: model.heads,
  token: model.kind === "segmentation" ? model.prefix : model.tokens, key: model.tokens, channel: model.head_dim};
const state = {section: "", block: 0, head: 0, token: model.prefix > 0 ? 0 : middlePatch,
  key: model.prefix + middlePatch, channel: 0};
const listeners = [];

function readFragment() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const [name, limit] of Object.entries(limits)) {
    const value = Number(given.get(name) ?? NaN);
    if (Number.isInteger(value) && value >= 0 && value < limit) state[name] = value;
  }
  state.section = given.get("section") ?? state.section;
}

const fragment = (changes = {}) => "#" + new URLSearchParams({...state, ...changes});

// Changes the selection and shows it everywhere.
function select(changes) {
  const changed = Object.keys(changes).filter((name) => state[name] !== changes[name]);
  if (!changed.length) return;
  Object.assign(state, changes);
  history.replaceState(null, "", fragment());
  for (const listener of listeners) listener(changed);
}
