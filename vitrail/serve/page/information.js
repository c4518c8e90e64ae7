// The view of what the server says of a model.
import {factsTable} from "./elements.js";

export const information = {
  name: "Model",
  suits: () => true,
  needsNoImage: true,
  async show(state) {
    const {id, object, created, owned_by: owner, ...facts} = state.model;
    state.result.replaceChildren(factsTable({name: id, ...facts}));
  },
};
