// Photographs to begin with.
import {element} from "./elements.js";

const kSamples = ["cat", "coffee", "rocket"];

// Fills an element with buttons; `add` gets the file of the one that was chosen.
export function showSamples(group, add) {
  for (const name of kSamples) {
    const address = `page/${name}.jpg`;
    const choice = element("button", {type: "button", class: "sample", value: `${name}.jpg`, title: `Sample: ${name}`},
      element("img", {src: address, alt: `Sample: ${name}`}));
    choice.addEventListener("click", async () => {
      const blob = await (await fetch(address)).blob();
      add([new File([blob], `${name}.jpg`, {type: blob.type})]);
    });
    group.append(choice);
  }
}
