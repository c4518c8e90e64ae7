// Requests to the server, and the same requests as commands for curl.
let key = "";
let lastCommand = "";
// The server lets pages change its state only with the token in its own page.
const token = document.querySelector("meta[name=vitrail-token]").content;

export const setKey = (text) => { key = text; };
export const command = () => lastCommand;

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

function remember(url, files) {
  const address = new URL(url, document.baseURI).href;
  const body = files.length === 1 ? `--data-binary ${quoted("@" + files[0].name)}`
    : files.map((file) => `-F ${quoted("image=@" + file.name)}`).join(" ");
  const header = key ? " -H 'Authorization: Bearer KEY'" : "";
  lastCommand = files.length ? `curl${header} ${body} ${quoted(address)}` : `curl${header} ${quoted(address)}`;
}

// Sends images and returns the JSON of the response.  Throws an Error with the server's message.
export async function request(path, params = {}, files = [], signal = undefined) {
  const url = target(path, params);
  remember(url, files);
  const options = {signal, headers: {"Vitrail-Token": token}};
  if (key) options.headers.Authorization = `Bearer ${key}`;
  if (files.length === 1) {
    options.method = "POST";
    options.body = files[0];
    options.headers["Content-Type"] = files[0].type || "application/octet-stream";
  } else if (files.length > 1) {
    options.method = "POST";
    options.body = new FormData();
    for (const file of files) options.body.append("image", file, file.name);
  }
  let response;
  try {
    response = await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not respond.");
  }
  const value = await response.json().catch(() => ({error: `status ${response.status}`}));
  if (response.status === 401) throw new NeedsKey("The server needs an API key.");
  if (!response.ok && !Array.isArray(value)) throw new Error(value.error?.message ?? value.error);
  return value;
}
