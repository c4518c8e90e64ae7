// The page: images in, one view at a time.
import {command, forgetTime, NeedsKey, request, setKey, time} from "./api.js";
import {attention} from "./attention.js";
import {hasCamera, photograph} from "./camera.js";
import {classify} from "./classify.js";
import {compare} from "./compare.js";
import {objects} from "./detect.js";
import {arrows, button, element} from "./elements.js";
import {components, patches} from "./features.js";
import {drawImage} from "./draw.js";
import {explanation} from "./explain.js";
import {decode, newImage, read} from "./images.js";
import {information} from "./information.js";
import {anomalies, depth, segments} from "./maps.js";
import {matte} from "./matte.js";
import {poses} from "./pose.js";
import {showSamples} from "./samples.js";
import {segmentation} from "./segment.js";
import {Stage} from "./stage.js";
import {texts} from "./texts.js";

// A view has a name, tells whether it suits a model, gives its options and shows something of the images.
const views = [segmentation, segments, depth, matte, objects, poses, anomalies, classify, texts, attention, components,
  patches, compare, explanation, information];

const byId = (id) => document.getElementById(id);
const state = {models: [], model: null, view: null, images: [], current: null, exif: true, result: byId("result"),
  complaint: "", stage: new Stage(() => (state.current ? state.view : {})), show, select};
let running = null;

function say(text, bad = false) {
  byId("status").textContent = text;
  byId("status").className = bad ? "bad" : "";
}

function clearResults() {
  state.result.replaceChildren();
  state.stage.draw();
  state.stage.legend("");
  byId("time").textContent = "";
}

async function show() {
  if (!state.view) return;
  running?.abort();
  const {signal} = running = new AbortController();
  state.complaint = "";
  byId("side").toggleAttribute("data-idle", !state.current && !state.view.needsNoImage);
  if (!state.current && !state.view.needsNoImage) {
    clearResults();
    return say("");
  }
  say("Computing …");
  forgetTime();
  byId("result").setAttribute("aria-busy", "true");
  try {
    await state.view.show(state, signal);
    if (signal.aborted) return;
    say(state.complaint, true);
    byId("time").textContent = time();
  } catch (error) {
    if (signal.aborted) return;
    clearResults();
    byId("key").hidden = !(error instanceof NeedsKey);
    const named = state.images.some(({name}) => error.message.startsWith(name)) || error instanceof NeedsKey;
    say(named || !state.current ? error.message : `${state.current.name}: ${error.message}`, true);
  }
  byId("result").removeAttribute("aria-busy");
  byId("curl").textContent = command();
}

function setView(view, focus = false) {
  state.view = view;
  [...byId("tabs").children].forEach((tab) => {
    const selected = tab.textContent === view.name;
    tab.setAttribute("aria-selected", String(selected));
    tab.tabIndex = selected ? 0 : -1;
    if (!selected) return;
    if (focus) tab.focus();
    tab.scrollIntoView({block: "nearest", inline: "nearest"});
  });
  const options = view.options?.(state) ?? [];
  if (state.model.note) options.unshift(element("p", {class: "note wide"}, state.model.note));
  if (view.help) options.push(element("p", {class: "hint wide"}, view.help));
  byId("options").replaceChildren(...options);
  byId("options").hidden = !options.length;
  byId("panel").classList.toggle("draws", Boolean(view.drag));
  byId("panel").setAttribute("aria-label", view.name);
  clearResults();
  show();
}

const suitable = () => views.filter((view) => view.suits(state.model));

function setModel(model) {
  state.model = model;
  const size = model.image_size?.join(" × ");  // a model for images of any size has none
  byId("facts").textContent = [model.architecture, size, model.precision].filter(Boolean).join(" · ");
  byId("tabs").replaceChildren(...suitable().map((view) =>
    button(view.name, () => setView(view), {role: "tab", "aria-controls": "panel"})));
  setView(suitable().includes(state.view) ? state.view : suitable()[0]);
}

function showStrip() {
  byId("images").classList.toggle("empty", !state.images.length);
  for (const sample of byId("samples").querySelectorAll("button"))
    sample.hidden = state.images.some(({name}) => name === sample.value);
  byId("strip").replaceChildren(...state.images.map((image) => {
    const canvas = element("canvas", {"aria-hidden": "true"});
    if (image.preview) drawImage(canvas, image.preview, image.width, image.height, 160);
    const current = image === state.current;
    const thumbnail = button(canvas, () => select(image), {class: "thumbnail", title: image.name,
      "aria-label": image.name, "aria-pressed": String(current)});
    if (!image.preview) thumbnail.append(element("span", {}, image.name.split(".").at(-1)));
    thumbnail.tabIndex = current ? 0 : -1;
    thumbnail.addEventListener("keydown", (event) => { if (event.key === "Delete") remove(); });
    return thumbnail;
  }));
  byId("strip").querySelector("[aria-pressed=true]")?.scrollIntoView({block: "nearest", inline: "nearest"});
}

// Makes an image the current one; undefined: none.
async function select(image) {
  state.current = image ?? null;
  const focused = byId("strip").contains(document.activeElement);
  showStrip();
  if (focused) byId("strip").querySelector("[aria-pressed=true]")?.focus();
  const bitmap = image?.preview ? await decode(image, state.exif) : null;
  if (state.current !== (image ?? null)) return bitmap?.close();
  state.stage.set(image, bitmap);
  return show();
}

function remove() {
  const at = state.images.indexOf(state.current);
  state.images = state.images.toSpliced(at, 1);
  select(state.images[Math.min(at, state.images.length - 1)]);
}

async function add(list) {
  const files = [...list].filter((file) => file.type.startsWith("image/"));
  const others = [...list].filter((file) => !files.includes(file)).map(({name}) => `${name} is no image.`).join("\n");
  if (!files.length) {
    clearResults();
    return say(others || "That is no image.", true);
  }
  const added = await Promise.all(files.map(newImage));
  await Promise.all(added.map((image) => read(image, state.exif)));
  state.images = [...state.images, ...added];
  await select(added[0]);
  if (others) say([byId("status").textContent, others].join("\n").trim(), true);
}

async function setExif(exif) {
  state.exif = exif;
  for (const view of views) view.forget?.();  // pixels are others now
  await Promise.all(state.images.map((image) => read(image, exif)));
  select(state.current ?? undefined);
}

async function loadModels() {
  try {
    state.models = (await request("v1/models")).data;
    byId("key").hidden = true;
  } catch (error) {
    byId("key").hidden = !(error instanceof NeedsKey);
    return say(error.message, true);
  }
  if (!state.models.length) return say("The models are loading.  Reload the page in a moment.", true);
  byId("model").replaceChildren(...state.models.map(({id}) => element("option", {value: id}, id)));
  setModel(state.models[0]);
}

byId("model").addEventListener("change", (event) => setModel(state.models[event.target.selectedIndex]));
byId("file").addEventListener("change", async (event) => {
  await add(event.target.files);
  event.target.value = "";  // the same file may be chosen again
});
byId("camera").hidden = !hasCamera;
byId("camera").addEventListener("click", async () => {
  try {
    const file = await photograph(byId("camera-dialog"));
    if (file) await add([file]);
  } catch (error) {
    say(`No photograph: ${error.message}`, true);
  }
});
byId("remove").addEventListener("click", remove);
byId("clear").addEventListener("click", () => {
  state.images = [];
  select();
});
byId("exif").addEventListener("change", (event) => setExif(event.target.checked));
document.addEventListener("paste", (event) => {
  if (event.clipboardData.files.length) add(event.clipboardData.files);
});
for (const name of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    const place = event.target.closest?.(".place");
    place?.classList.toggle("over", name === "dragover");
    byId("images").classList.toggle("over", name === "dragover" && !place);
    if (name === "drop") (place?.take ?? add)(event.dataTransfer.files);
  });
}
arrows(byId("tabs"), (at) => setView(suitable()[at]));
arrows(byId("strip"), (at) => select(state.images[at]));
byId("key").addEventListener("submit", (event) => {
  event.preventDefault();
  setKey(byId("key-text").value);
  loadModels();
});
byId("copy").addEventListener("click", () => navigator.clipboard?.writeText(command()));
showSamples(byId("samples"), add);
loadModels();
