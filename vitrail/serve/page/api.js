// Requests to the server, and the same requests as commands for curl.
let key = "";
let lastCommand = "", lastTime = "";
// The server lets pages change its state only with the token in its own page.
const token = document.querySelector("meta[name=vitrail-token]").content;

export const setKey = (text) => { key = text; };
export const command = () => lastCommand;
export const time = () => lastTime;
export const forgetTime = () => { lastTime = ""; };

export class NeedsKey extends Error {}

const quoted = (text) => "'" + text.replaceAll("'", "'\\''") + "'";

function target(path, params) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    for (const each of [value].flat()) {
      if (each !== undefined && each !== false && each !== "") query.append(name, each);
    }
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

// The parts of a form: the images, and the files that come with one, by their names.
const partsOf = (files, more) => [...files.map((file) => ["image", file]), ...Object.entries(more)];

function remember(url, files, more) {
  const address = new URL(url, document.baseURI).href, parts = partsOf(files, more);
  const body = parts.length === 1 ? `--data-binary ${quoted("@" + files[0].name)}`
    : parts.map(([name, file]) => `-F ${quoted(`${name}=@${file.name}`)}`).join(" ");
  const header = key ? " -H 'Authorization: Bearer KEY'" : "";
  lastCommand = files.length ? `curl${header} ${body} ${quoted(address)}` : `curl${header} ${quoted(address)}`;
}

// "Answered in 34 ms: decode 3 ms, queue 0 ms, model 12 ms, total 16 ms"
function timeOf(begin, header) {
  const parts = [...(header ?? "").matchAll(/(\w+);dur=([\d.]+)/g)];
  const list = parts.map(([, name, duration]) => `${name} ${Math.round(duration)} ms`).join(", ");
  return `Answered in ${Math.round(performance.now() - begin)} ms` + (list ? `; the server: ${list}` : "");
}

// Sends images.  Throws an Error if there is no answer, or for a key that is missing.
async function send(path, params, files, signal, more = {}) {
  const url = target(path, params), begin = performance.now(), parts = partsOf(files, more);
  remember(url, files, more);
  const options = {signal, headers: {"Vitrail-Token": token}};
  if (key) options.headers.Authorization = `Bearer ${key}`;
  if (parts.length === 1) {
    options.method = "POST";
    options.body = files[0];
    options.headers["Content-Type"] = files[0].type || "application/octet-stream";
  } else if (parts.length > 1) {
    options.method = "POST";
    options.body = new FormData();
    for (const [name, file] of parts) options.body.append(name, file, file.name);
  }
  let response;
  try {
    response = await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not respond.");
  }
  if (response.status === 401) throw new NeedsKey("The server needs an API key.");
  if (response.ok) lastTime = timeOf(begin, response.headers.get("Server-Timing"));
  return response;
}

const jsonOf = (response) => response.json().catch(() => ({error: `status ${response.status}`}));

const failure = ({status}, value) => Object.assign(new Error(value.error?.message ?? value.error), {status});

// Sends images and returns the JSON of the response.  Throws an Error with the server's message and its status.
export async function request(path, params = {}, files = [], signal = undefined) {
  const response = await send(path, params, files, signal), value = await jsonOf(response);
  if (!response.ok && !Array.isArray(value)) throw failure(response, value);
  return value;
}

// Sends an image, and more files by their names.  Returns the file that the server makes for the option `format`.
// Throws as request().
export async function fileOf(path, params, file, signal, more = {}) {
  const response = await send(path, params, [file], signal, more);
  if (!response.ok) throw failure(response, await jsonOf(response));
  return response.blob();
}

// The picture that the server draws, a PNG file.
export const pictureOf = (path, params, file, signal, more = {}) =>
  fileOf(path, {...params, format: "png"}, file, signal, more);
