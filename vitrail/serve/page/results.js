// Results of the server for each image.  An image is asked for once with the same options.
import {request} from "./api.js";

export class Results {
  // kept: the number of results; convert: makes of a result what is kept of it.
  constructor(path, kept = 1024, convert = (value) => value) {
    Object.assign(this, {path, kept, convert, known: new Map()});
  }

  // The results in the order of the images; {error} for an image that failed.
  async of(state, images, params, signal) {
    const options = {model: state.model.id, ...params, exif: state.exif};
    const key = (image) => JSON.stringify([image.id, options]);
    const missing = images.filter((image) => !this.known.has(key(image)));
    if (this.known.size + missing.length > this.kept) this.known.clear();
    const asked = this.known.size ? missing : images;
    if (asked.length) {
      const values = await this.ask(asked, options, signal);
      asked.forEach((image, i) => this.known.set(key(image), values[i].error ? values[i] : this.convert(values[i])));
    }
    return images.map((image) => this.known.get(key(image)));
  }

  async ask(images, options, signal) {
    const files = images.map((image) => image.file);
    try {
      return [await request(this.path, options, files, signal)].flat();
    } catch (error) {
      if (error.status !== 422) throw error;  // else it is the image's
      return images.map(() => ({error: error.message}));
    }
  }
}
