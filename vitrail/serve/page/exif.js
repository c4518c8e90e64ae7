// The orientation of a photograph in JPEG, PNG and WebP.  Browsers differ in what they do with it, so that they get the
// file without it, and the page turns the image.

const textAt = (view, at) => String.fromCharCode(...Array.from({length: 4}, (_, i) => view.getUint8(at + i)));

// Where the EXIF data of a file are: begin and end of what is replaced by `by`, and the beginning of the data.
function inJpeg(view) {
  for (let at = 2; at + 10 < view.byteLength && view.getUint8(at) === 0xFF && view.getUint8(at + 1) !== 0xDA;) {
    const end = at + 2 + view.getUint16(at + 2), isExif = textAt(view, at + 4) === "Exif";
    if (isExif && view.getUint8(at + 1) === 0xE1) return {begin: at, end, data: at + 10, by: ""};
    at = end;
  }
  return null;
}

function inPng(view) {
  for (let at = 8; at + 12 <= view.byteLength;) {
    const end = at + 12 + view.getUint32(at);
    if (textAt(view, at + 4) === "eXIf") return {begin: at, end, data: at + 8, by: ""};
    at = end;
  }
  return null;
}

function inWebp(view) {
  for (let at = 12; at + 16 < view.byteLength;) {
    const size = view.getUint32(at + 4, true), prefixed = textAt(view, at + 8) === "Exif";
    if (textAt(view, at) === "EXIF") return {begin: at, end: at + 4, data: at + (prefixed ? 14 : 8), by: "JUNK"};
    at += 8 + size + size % 2;
  }
  return null;
}

function orientationAt(view, data) {
  const little = view.getUint8(data) === 0x49, table = data + view.getUint32(data + 4, little);
  for (let i = 0; i < view.getUint16(table, little); ++i) {
    const entry = table + 2 + 12 * i;
    if (view.getUint16(entry, little) === 0x0112) return view.getUint16(entry + 8, little);
  }
  return 1;
}

// The orientation, from 1 to 8, and the file without it.
export async function orientationOf(file) {
  const find = {"image/jpeg": inJpeg, "image/png": inPng, "image/webp": inWebp}[file.type];
  try {
    const view = new DataView(await file.arrayBuffer()), found = find?.(view);
    if (!found) return {orientation: 1, plain: file};
    const plain = new Blob([file.slice(0, found.begin), found.by, file.slice(found.end)], {type: file.type});
    return {orientation: orientationAt(view, found.data), plain};
  } catch {
    return {orientation: 1, plain: file};  // a malformed file
  }
}

// The bitmap as the camera was held.
export function turn(bitmap, orientation) {
  const {width: w, height: h} = bitmap;
  const matrix = {2: [-1, 0, 0, 1, w, 0], 3: [-1, 0, 0, -1, w, h], 4: [1, 0, 0, -1, 0, h], 5: [0, 1, 1, 0, 0, 0],
    6: [0, 1, -1, 0, h, 0], 7: [0, -1, -1, 0, h, w], 8: [0, -1, 1, 0, 0, w]}[orientation];
  if (!matrix) return bitmap;
  const canvas = orientation > 4 ? new OffscreenCanvas(h, w) : new OffscreenCanvas(w, h);
  const context = canvas.getContext("2d");
  context.setTransform(...matrix);
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  return canvas.transferToImageBitmap();
}
