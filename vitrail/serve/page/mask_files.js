// Masks as files: black and white, the object cut out, the overlay, and JSON.
import {button, element, save} from "./elements.js";
import {decode} from "./images.js";
import {drawLayer, layerOf} from "./masks.js";

async function png(width, height, paint) {
  const canvas = new OffscreenCanvas(width, height);
  await paint(canvas.getContext("2d"));
  return canvas.convertToBlob({type: "image/png"});
}

// Buttons that save masks of the current image.
export function downloads(state, masks) {
  const {current: image, exif} = state, {width, height} = image, all = masks.map(({rle}) => rle);
  const photograph = async (context) => {
    const bitmap = await decode(image, exif);
    context.drawImage(bitmap, 0, 0);
    bitmap.close();
  };
  const kinds = {
    "Mask": ["mask.png", () => png(width, height, (context) => {
      context.fillRect(0, 0, width, height);
      context.drawImage(layerOf(all, () => [255, 255, 255]), 0, 0);
    })],
    "Cut-out": ["cut-out.png", () => png(width, height, async (context) => {
      await photograph(context);
      context.globalCompositeOperation = "destination-in";
      context.drawImage(layerOf(all), 0, 0);
    })],
    "Overlay": ["overlay.png", () => png(width, height, async (context) => {
      await photograph(context);
      drawLayer(context, layerOf(all));
    })],
    "JSON": ["masks.json", () => new Blob([JSON.stringify({image: image.name, masks})], {type: "application/json"})],
  };
  const name = image.name.replace(/\.[^.]*$/, "");
  return element("div", {class: "actions", role: "group", "aria-label": "Download"}, element("span", {}, "Download"),
    ...Object.entries(kinds).map(([text, [file, make]]) =>
      button(text, async () => save(await make(), `${name}-${file}`))));
}
