// The view that saves the page which explains the forward pass of the current image.
import {fileOf} from "./api.js";
import {button, element, field, save} from "./elements.js";

const choice = (...options) =>
  element("select", {}, ...options.map(([value, text]) => element("option", {value}, text)));

export const explanation = {
  name: "Explain",
  suits: (model) => model.tasks.includes("explain") && model.depth > 0,
  options() {
    this.detail = choice(["standard", "at most 8 MB"], ["small", "at most 2 MB"], ["full", "everything in 16 bits"]);
    this.lang = choice(["en", "English"], ["zh", "中文"]);
    return [field("Size of the page", this.detail), field("Language", this.lang)];
  },
  async show(state) {
    const status = element("p", {role: "status"});
    const write = async () => {
      const {model, current, exif} = state;
      status.textContent = "The server computes the page.";
      try {
        const params = {model: model.id, detail: this.detail.value, lang: this.lang.value, exif, format: "html"};
        const page = await fileOf("v1/explain", params, current.file);
        save(page, `${current.name} explained.html`);
        status.textContent = `Saved ${Math.round(page.size / 1000).toLocaleString("en")} kB. Open the file in a browser.`;
      } catch (error) {
        status.textContent = error.message;
      }
    };
    state.result.replaceChildren(
      element("p", {}, "One file with every shape, value, attention map and gradient of this image's forward pass. " +
        "It opens without a network and without the server."),
      button("Save the page", write), status);
  },
};
