// The images that the user chose.  The page keeps a small copy of each, and one at full size: the current one.
import {orientationOf, turn} from "./exif.js";

const kPreview = 512;  // pixels
let last = 0;

export async function newImage(file) {
  return {id: ++last, file, name: file.name, ...await orientationOf(file), preview: null, width: 0, height: 0};
}

// exif: whether to turn the image as the camera was held.  Null if the browser cannot show the image.
export async function decode({plain, orientation}, exif) {
  const bitmap = await createImageBitmap(plain).catch(() => null);
  return bitmap && exif ? turn(bitmap, orientation) : bitmap;
}

function preview(bitmap) {
  const scale = Math.min(1, kPreview / Math.max(bitmap.width, bitmap.height));
  const small = new OffscreenCanvas(Math.ceil(bitmap.width * scale), Math.ceil(bitmap.height * scale));
  const context = small.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, small.width, small.height);
  return small;
}

// Reads the size and the small copy.
export async function read(image, exif) {
  const bitmap = await decode(image, exif);
  image.preview = bitmap && preview(bitmap);
  image.width = bitmap?.width ?? 0;
  image.height = bitmap?.height ?? 0;
  bitmap?.close();
}
