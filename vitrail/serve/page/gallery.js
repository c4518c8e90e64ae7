// Results of several images, each beside its image.
import {drawImage} from "./draw.js";
import {button, element} from "./elements.js";

const kSide = 480;  // pixels of a small picture

// The images with their results.  Those that failed are said below the options; if all failed, it is an Error.
export function pairs(state, images, results) {
  const all = images.map((image, i) => ({image, result: results[i]}));
  const failed = all.filter(({result}) => result.error);
  state.complaint = failed.map(({image, result}) => `${image.name}: ${result.error}`).join("\n");
  if (failed.length === all.length) throw new Error(state.complaint);
  return all;
}

// A picture that makes its image the current one.  paint: draws over it.
export function picture(state, image, paint = null, size = image) {
  const canvas = element("canvas", {"aria-hidden": "true"});
  const context = drawImage(canvas, image.preview, size.width || 640, size.height || 480, kSide);
  paint?.(context);
  return button(canvas, () => state.select(image), {class: "picture", "aria-label": `Show ${image.name}`,
    "aria-current": String(image === state.current)});
}

// Beside each image what `body` makes of its result.  One image alone is on the stage already.  paint(context, pair):
// draws over the image.
export function cards(state, all, body, paint = null) {
  if (all.length === 1) return [body(all[0].result)];
  return [element("ul", {class: "cards"}, ...all.map(({image, result}) => element("li", {},
    picture(state, image, paint && ((context) => paint(context, {image, result}))),
    element("div", {}, element("h2", {}, image.name),
      result.error ? element("p", {class: "bad"}, result.error) : body(result)))))];
}

// Small maps of several images; paint(context, result) draws one.
export function maps(state, all, paint) {
  if (all.length === 1) return [];
  return [element("ul", {class: "maps"}, ...all.filter(({result}) => !result.error).map(({image, result}) =>
    element("li", {}, picture(state, image, (context) => paint(context, result), image.width ? image : result.region),
      element("span", {}, image.name))))];
}
