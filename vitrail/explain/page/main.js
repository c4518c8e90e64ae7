// SPDX-License-Identifier: Apache-2.0
// The page: its bar of steps, the selection, and the sections.
const sections = [...{
  transformer: [imageSection, patchSection, tokenSection, blockSection, headSection, depthSection, predictionSection,
    whySection, whatIfSection, gradientSection, textSection, compareSection],
  segmentation: samSections,
  training: trainingSections,
}[kind], moduleSection].filter(({suits}) => !suits || suits());
const byId = (id) => document.getElementById(id);

function showSection(section) {
  const content = byId(section.id).querySelector(".content"), active = document.activeElement;
  // A redraw keeps the keyboard where it was, and what was opened.
  const focus = content.contains(active) && active.dataset.moves;
  const open = [...content.querySelectorAll("details")].map((details) => details.open);
  content.replaceChildren(...section.show().flat(Infinity).filter(Boolean));
  [...content.querySelectorAll("details")].forEach((details, i) => { details.open = open[i] ?? false; });
  if (focus) content.querySelector(`[data-moves="${focus}"]`)?.focus({preventScroll: true});
}

function showSelection() {
  const focus = document.activeElement?.closest("#selection label");
  const index = focus && [...byId("selection").children].indexOf(focus);
  const labels = {...(kind === "segmentation" && {block: "layer"})};
  const names = {token: tokenName, kept: keptName, image: followedName};
  byId("selection").replaceChildren(...Object.entries(choices).map(([name, count]) =>
    choice(text(`choice.${labels[name] ?? name}`), state[name], count, name, names[name])));
  if (focus) byId("selection").children[index].querySelector("input").focus();
}

function showFrame() {
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
  byId("skip").textContent = text("skip");
  byId("title").replaceChildren(text(kind === "training" ? "title.training" : "title"));
  byId("facts").replaceChildren(bdi(model.name), ` · ${text(`facts.${kind}`, model)}`);
  byId("language").setAttribute("aria-label", text("language"));
  byId("language").value = language;
  byId("theme").textContent = text("theme");
  byId("selection").setAttribute("aria-label", text("selection"));
  byId("steps").setAttribute("aria-label", text("steps"));
  byId("steps").replaceChildren(element("ol", {}, sections.map(({id}) => element("li", {},
    element("a", {href: fragment({section: id}), "data-section": id,
      onclick: (event) => { event.preventDefault(); go(id); }}, text(`${id}.title`))))));
  const left = manifest.left_out.map(({what, kept}) => element("li", {}, element("code", {}, what), ` (${kept})`));
  byId("foot").replaceChildren(element("p", {}, text("foot", {version: manifest.vitrail, detail: manifest.detail})),
    left.length ? element("p", {}, text("foot.left_out")) : null, left.length ? element("ul", {}, left) : "");
}

// Scrolls to a section and puts the keyboard there.
function go(id) {
  state.section = id;
  history.replaceState(null, "", fragment());
  const smooth = !matchMedia("(prefers-reduced-motion: reduce)").matches;
  byId(id).scrollIntoView({behavior: smooth ? "smooth" : "auto"});
  byId(id).focus({preventScroll: true});
}

function showAll() {
  cache.clear();
  showFrame();
  showSelection();
  byId("main").replaceChildren(...sections.map(({id}) => element("section", {id, tabindex: "-1", "aria-labelledby": `${id}-title`},
    element("h2", {id: `${id}-title`}, text(`${id}.title`)), element("p", {class: "lead"}, text(`${id}.lead`)),
    element("div", {class: "content"}))));
  for (const section of sections) showSection(section);
  follow();
}

// Marks the step whose section is at the top of the window.
let observer = null;
function follow() {
  observer?.disconnect();
  observer = new IntersectionObserver((entries) => {
    for (const {isIntersecting, target} of entries) {
      if (!isIntersecting) continue;
      for (const link of document.querySelectorAll("#steps a")) {
        if (link.dataset.section !== target.id) {
          link.removeAttribute("aria-current");
          continue;
        }
        link.setAttribute("aria-current", "step");
        byId("steps").scrollTo({left: link.offsetLeft - 16});  // on a phone the steps are a row
      }
    }
  }, {rootMargin: "-20% 0px -75% 0px"});
  for (const {id} of sections) observer.observe(byId(id));
}

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  byId("theme").setAttribute("aria-checked", String(dark));
}

listeners.push((changed) => {
  showSelection();
  for (const section of sections) if (section.uses.some((name) => changed.includes(name))) showSection(section);
});

async function start() {
  setTheme(matchMedia("(prefers-color-scheme: dark)").matches);
  byId("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme !== "dark"));
  byId("language").addEventListener("change", () => {
    language = byId("language").value;
    showAll();
  });
  addEventListener("hashchange", () => {
    readFragment();
    showAll();
    if (state.section && byId(state.section)) go(state.section);
  });
  if (!("DecompressionStream" in window)) {
    byId("message").textContent = text("old_browser");
    return;
  }
  await readBlobs();
  readFragment();
  showAll();
  if (state.section && byId(state.section)) go(state.section);
  document.documentElement.dataset.ready = "true";
}

await start();
