// The page: images in, one view at a time.
import {command, NeedsKey, request, setKey} from "./api.js";
import {hasCamera, photograph} from "./camera.js";
import {element} from "./controls.js";
import {showPlain, views} from "./views.js";

const byId = (id) => document.getElementById(id);
const state = {models: [], model: null, view: null, files: [], image: null, canvas: byId("canvas"), running: null,
  legend: (text) => { byId("legend").textContent = text; }, show};

function say(text, bad = false) {
  byId("status").textContent = text;
  byId("status").className = bad ? "bad" : "";
}

async function show() {
  if (!state.model || !state.view) return;
  state.running?.abort();
  const running = state.running = new AbortController();
  state.legend("");
  showPlain(state);
  if (!state.files.length && !state.view.needsNoImage) return say("Choose an image to begin.");
  say("Computing …");
  try {
    await state.view.show(state, byId("panel"), running.signal);
    say("");
  } catch (error) {
    if (error.name === "AbortError") return;
    byId("key").hidden = !(error instanceof NeedsKey);
    say(error.message, true);
  }
  byId("curl").textContent = command();
}

function select(view, focus = false) {
  state.view = view;
  for (const tab of byId("tabs").children) {
    const selected = tab.textContent === view.name;
    tab.setAttribute("aria-selected", String(selected));
    tab.tabIndex = selected ? 0 : -1;
    if (selected && focus) tab.focus();
  }
  byId("panel").replaceChildren(element("div", {class: "options"}, ...(view.options?.(state) ?? [])));
  show();
}

function setModel(model) {
  state.model = model;
  const suitable = views.filter((view) => view.suits(model));
  byId("tabs").replaceChildren(...suitable.map((view) => {
    const tab = element("button", {role: "tab", type: "button", "aria-controls": "panel"}, view.name);
    tab.addEventListener("click", () => select(view));
    return tab;
  }));
  select(suitable.includes(state.view) ? state.view : suitable[0]);
}

async function setFiles(list) {
  const files = [...list].filter((file) => file.type.startsWith("image/"));
  if (!files.length) return say("That is no image.", true);
  state.files = files;
  state.image = await createImageBitmap(files[0], {imageOrientation: "none"}).catch(() => null);
  byId("stage").hidden = !state.image;
  show();
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
byId("file").addEventListener("change", (event) => setFiles(event.target.files));
byId("camera").hidden = !hasCamera;
byId("camera").addEventListener("click", async () => {
  try {
    const file = await photograph(byId("camera-dialog"));
    if (file) setFiles([file]);
  } catch (error) {
    say(`No photograph: ${error.message}`, true);
  }
});
document.addEventListener("paste", (event) => {
  if (event.clipboardData.files.length) setFiles(event.clipboardData.files);
});
for (const name of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    byId("drop").classList.toggle("over", name === "dragover");
    if (name === "drop") setFiles(event.dataTransfer.files);
  });
}
byId("tabs").addEventListener("keydown", (event) => {
  const tabs = [...byId("tabs").children], at = tabs.indexOf(document.activeElement);
  const next = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1}[event.key];
  if (next === undefined) return;
  event.preventDefault();
  const name = tabs[(next + tabs.length) % tabs.length].textContent;
  select(views.find((view) => view.name === name), true);
});
let pressed = [0, 0];  // where a box begins
const pixel = (event) => [event.offsetX, event.offsetY].map((at) =>
  Math.max(0, Math.floor(at * state.canvas.width / state.canvas.clientWidth)));
state.canvas.addEventListener("pointerdown", (event) => { pressed = pixel(event); });
state.canvas.addEventListener("click", (event) => {
  const [x, y] = pixel(event), size = Math.max(Math.abs(x - pressed[0]), Math.abs(y - pressed[1]));
  if (state.view?.drag && size > state.canvas.width / 100) return state.view.drag(state, pressed, [x, y]);
  state.view?.pick?.(state, x, y, event.shiftKey);
});
state.canvas.addEventListener("keydown", (event) => {
  if (state.image && state.view?.press?.(state, event.key, event.shiftKey)) event.preventDefault();
});
byId("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
byId("key").addEventListener("submit", (event) => {
  event.preventDefault();
  setKey(byId("key-text").value);
  loadModels();
});
byId("copy").addEventListener("click", () => navigator.clipboard?.writeText(command()));
loadModels();
