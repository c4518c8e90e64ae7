// The view of key points: persons with their limbs over the image.
import {unitOf} from "./draw.js";
import {element, field, percent, slider} from "./elements.js";
import {cards, pairs} from "./gallery.js";
import {Results} from "./results.js";

const kSides = [
  [/(^|[^A-Za-z])([Ll]eft|L)($|[^A-Za-z])/, "#00a0ff"],
  [/(^|[^A-Za-z])([Rr]ight|R)($|[^A-Za-z])/, "#ff8000"],
];
const kMiddle = "#00d200";

// The colour of the side of the body that a name says.
const colorOf = (name) => kSides.find(([side]) => side.test(name))?.[1] ?? kMiddle;

// Draws the boxes, and the limbs and key points whose scores are above a threshold.
function drawPersons(context, {names, limbs, persons}, threshold) {
  const unit = unitOf(context), colors = names.map(colorOf);
  context.save();
  context.lineCap = "round";
  for (const {box: [x0, y0, x1, y1], keypoints} of persons) {
    const seen = keypoints.map(([, , score]) => score > threshold);
    context.strokeStyle = "white";
    context.lineWidth = unit;
    context.strokeRect(x0, y0, x1 - x0, y1 - y0);
    context.lineWidth = 3 * unit;
    for (const [from, to] of limbs.filter((limb) => limb.every((point) => seen[point]))) {
      context.strokeStyle = colors[from] === colors[to] ? colors[from] : kMiddle;
      context.beginPath();
      context.moveTo(keypoints[from][0], keypoints[from][1]);
      context.lineTo(keypoints[to][0], keypoints[to][1]);
      context.stroke();
    }
    keypoints.forEach(([x, y], i) => {
      if (!seen[i]) return;
      context.fillStyle = colors[i];
      context.beginPath();
      context.arc(x, y, 4 * unit, 0, 2 * Math.PI);
      context.fill();
    });
  }
  context.restore();
}

export const poses = {
  name: "Poses",
  suits: (model) => model.tasks.includes("pose"),
  results: new Results("v1/pose", 256),
  options(state) {
    const detectors = state.models.filter(({tasks, classes}) => tasks.includes("detect") && classes > 0);
    this.detector = element("select", {}, element("option", {value: ""}, "the image"),
      ...detectors.map(({id}) => element("option", {value: id}, id)));
    this.classes = element("input", {type: "text"});
    this.classes.value = "person";
    this.threshold = slider("Minimum score of a key point",
      {max: 1, step: 0.01, value: 0.3, shown: percent}, state.show);
    const ofDetector = field("Class of the detector", this.classes, state.show);
    ofDetector.hidden = true;
    return [...(detectors.length ? [field("Persons are those of", this.detector, () => {
      ofDetector.hidden = !this.detector.value;
      state.show();
    }), ofDetector] : []), this.threshold.field];
  },
  async show(state, signal) {
    const detector = this.detector.value, params = detector ? {detector, classes: this.classes.value.trim()} : {};
    const all = pairs(state, state.images, await this.results.of(state, state.images, params, signal));
    const threshold = Number(this.threshold.input.value);
    const paint = (context, result) => { if (!result.error) drawPersons(context, result, threshold); };
    const count = ({keypoints}) => keypoints.filter(([, , score]) => score > threshold).length;
    const {result} = all.find((pair) => pair.image === state.current);
    if (!result.error) {
      state.stage.draw((context) => paint(context, result));
      const points = result.persons.reduce((sum, person) => sum + count(person), 0);
      const {length} = result.persons;
      state.stage.legend(`${points} key points of ${length === 1 ? "1 person" : `${length} persons`}`);
    }
    state.result.replaceChildren(...cards(state, all, ({names, persons}) => (persons.length
      ? element("ul", {}, ...persons.map((person) =>
        element("li", {}, `${person.label}: ${count(person)} of ${names.length} key points`)))
      : element("p", {}, "No person was found.")), (context, {result: each}) => paint(context, each)));
  },
};
