// Worlds: their pictures, which the server draws, moving from one to the next, and changed by hand.

import { h } from "./dom.js";

const COLOURS = { r: "red", y: "yellow", g: "green", o: "orange", p: "purple", b: "blue" };
const FIGURES = {
  0: "M-11 11 L-3 -11 L3 -3 L11 -11 L11 11 Z",
  1: "M-11 -11 L11 -11 L0 0 L11 11 L-11 11 Z",
  2: "M-11 0 L0 -11 L11 0 L4 0 L4 11 L-11 11 Z",
  3: "M-11 -4 L0 -11 L11 -4 L0 3 L11 11 L-11 11 Z",
  4: "M-4 -11 L4 -11 L4 -4 L11 -4 L11 11 L-11 4 L-4 4 Z",
};
const DURATION = 450;

/** The paper's domain whose worlds a language that remembers where has, too. */
export const baseName = (domain) => domain.replace(/-where$/, "");

/** What stands at each position of a text such as `1:r_ 2:__`. */
const cells = (world) => (world ? world.split(" ").map((cell) => cell.slice(cell.indexOf(":") + 1)) : []);
const text = (contents) => contents.map((content, place) => `${place + 1}:${content}`).join(" ");
const changed = (contents, place, content) => text(contents.with(place, content));

/** What a cell looks like, how many places can be changed by hand, and how: groups of [words, world after it]. */
const DOMAINS = {
  scene: {
    cell: /^(__|[rygopb][rygopb_])$/,
    places: (contents) => (contents.length === 10 ? 10 : 0),
    name: (place) => `Position ${place + 1}`,
    choices(contents, place) {
      const [shirt, hat] = contents[place];
      const shirts = Object.entries(COLOURS).map(([letter, name]) => [name, changed(contents, place, letter + hat)]);
      const hats = Object.entries(COLOURS).map(([letter, name]) => [name, changed(contents, place, shirt + letter)]);
      return {
        shirt: [["nobody", changed(contents, place, "__")], ...shirts],
        ...(shirt !== "_" && { hat: [["no hat", changed(contents, place, shirt + "_")], ...hats] }),
      };
    },
  },
  alchemy: {
    cell: /^(_|[rygopb]{1,4})$/,
    places: (contents) => (contents.length === 7 ? 7 : 0),
    name: (place) => `Beaker ${place + 1}`,
    choices(contents, place) {
      const units = contents[place].replace("_", "");
      const colours = { ...COLOURS, b: "brown" };
      const more = Object.entries(colours).map(([letter, name]) => [name, changed(contents, place, units + letter)]);
      return {
        ...(units.length < 4 && { "pour in": more }),
        ...(units && {
          "take out": [
            ["one unit", changed(contents, place, units.slice(0, -1) || "_")],
            ["everything", changed(contents, place, "_")],
          ],
        }),
      };
    },
  },
  tangrams: {
    cell: /^[0-4]$/,
    places: (contents) => Math.min(contents.length + 1, 5),
    name: (place) => `Position ${place + 1}`,
    choices(contents, place) {
      const others = Object.keys(FIGURES)
        .filter((figure) => !contents.includes(figure))
        .map((figure) => [`figure ${"ABCDE"[figure]}`, figure]);
      const [left, here, right] = [contents[place - 1], contents[place], contents[place + 1]];
      const swapped = (from, one, other) => text(contents.toSpliced(from, 2, one, other));
      return {
        ...(others.length && {
          "put here": others.map(([name, shape]) => [name, text(contents.toSpliced(place, 0, shape))]),
        }),
        ...(here && {
          change: [
            ["take away", text(contents.toSpliced(place, 1))],
            ...(left ? [["move left", swapped(place - 1, here, left)]] : []),
            ...(right ? [["move right", swapped(place, right, here)]] : []),
          ],
        }),
      };
    },
  },
};

/** Shows a picture, or a text where the domain has none; what was there before moves to where it is now. */
export function show(figure, svg, { moving = true } = {}) {
  if (figure.dataset.svg === svg) return;
  const before = figure.querySelector(":scope > svg, :scope > code");
  const template = document.createElement("template");
  template.innerHTML = svg;
  const after = template.content.firstElementChild;
  if (before) before.replaceWith(after);
  else figure.prepend(after);
  figure.dataset.svg = svg;
  const { width, height } = after.viewBox?.baseVal ?? {};
  figure.style.setProperty("--ratio", width / height);
  if (before && after.viewBox && moving && !matchMedia("(prefers-reduced-motion: reduce)").matches) move(before, after);
}

function move(before, after) {
  const old = pieces(before);
  const fresh = pieces(after);
  const origin = new Map();
  // The same thing at the same place, then the nearest that looks the same, then the nearest with the same shirt.
  const alike = [
    (one, other) => one.kind === other.kind && one.x === other.x && one.y === other.y,
    (one, other) => one.kind === other.kind,
    (one, other) => one.kind.length === 2 && one.kind[0] === other.kind[0],
  ];
  for (const fits of alike) {
    for (const piece of fresh.filter((piece) => !origin.has(piece))) {
      const taken = new Set(origin.values());
      const candidates = old.filter((other) => !taken.has(other) && fits(piece, other));
      candidates.sort((one, other) => distance(piece, one) - distance(piece, other));
      if (candidates.length) origin.set(piece, candidates[0]);
    }
  }
  for (const piece of fresh) {
    const from = origin.get(piece);
    const frames = from ? [at(from), at(piece)] : [{ opacity: 0 }, { opacity: 1 }];
    if (!from || distance(from, piece)) piece.element.animate(frames, { duration: DURATION, easing: "ease-in-out" });
  }
  const stayed = new Set(origin.values());
  for (const { element } of old.filter((piece) => !stayed.has(piece))) {
    element.removeAttribute("data-piece"); // it is no part of the world any more
    after.firstElementChild.append(element);
    element.animate([{ opacity: 1 }, { opacity: 0 }], { duration: DURATION }).finished.finally(() => element.remove());
  }
}

function pieces(svg) {
  return [...svg.querySelectorAll("[data-piece]")].map((element) => {
    const { e: x, f: y } = element.transform.baseVal[0].matrix;
    return { element, kind: element.dataset.piece, x, y };
  });
}

const at = ({ x, y }) => ({ transform: `translate(${x}px, ${y}px)` });
const distance = (one, other) => Math.hypot(one.x - other.x, one.y - other.y);

/**
 * A picture of a world that can be changed by hand: a button over each place opens what can be done there.
 *
 * `update(domain, world, svg, editable)` shows a world; `onchange(world)` hears of the next one. `asText`, its line of text,
 * may be moved elsewhere.
 */
export function worldView(label, onchange) {
  const places = h("div", { className: "places" });
  const palette = h("div", { className: "palette", role: "group", hidden: true });
  const figure = h("figure", { className: "world" }, places);
  const input = h("input", { type: "text", spellcheck: false, autocomplete: "off", onchange: () => onchange(input.value) });
  const asText = h("label", { className: "quiet as-text" }, `${label} as text `, input);
  const element = h("div", { className: "world-view" }, figure, palette, asText);
  let chosen = null;
  let domain, world, editable;

  function choose(place) {
    chosen = place === chosen ? null : place;
    draw();
  }

  function draw() {
    const rules = DOMAINS[domain];
    const contents = cells(world);
    const valid = rules && text(contents) === world && contents.every((content) => rules.cell.test(content));
    const count = valid && editable ? rules.places(contents) : 0;
    if (chosen !== null && chosen >= count) chosen = null;
    figure.style.setProperty("--places", domain === "tangrams" ? 5 : count);
    if (places.children.length !== count) {
      places.replaceChildren(
        ...Array.from({ length: count }, (_, place) =>
          h("button", { type: "button", title: "Change by hand", onclick: () => choose(place) })
        )
      );
    }
    [...places.children].forEach((button, place) => {
      button.setAttribute("aria-label", `${label}: change ${rules.name(place).toLowerCase()}`);
      button.setAttribute("aria-expanded", String(place === chosen));
    });
    palette.hidden = chosen === null;
    if (chosen !== null) drawPalette(rules, contents);
  }

  function drawPalette(rules, contents) {
    const focused = palette.contains(document.activeElement) && document.activeElement.dataset.choice;
    palette.setAttribute("aria-label", rules.name(chosen));
    const groups = Object.entries(rules.choices(contents, chosen)).map(([name, choices]) =>
      h(
        "p",
        { role: "group", "aria-label": name },
        h("span", { className: "quiet" }, `${name}: `),
        choices.map(([words, result]) => {
          const choice = { "data-choice": `${name}: ${words}`, onclick: () => onchange(result) };
          return h("button", { type: "button", className: `swatch ${words}`, ...choice }, outline(words), words);
        })
      )
    );
    palette.replaceChildren(h("strong", {}, rules.name(chosen)), ...groups);
    if (!focused) return;
    const same = [...palette.querySelectorAll("button")].find((button) => button.dataset.choice === focused);
    (same ?? places.children[chosen]).focus(); // what cannot be done twice leads back to its place
  }

  return {
    element,
    asText,
    update(newDomain, newWorld, svg, canChange = true, shown = newWorld) {
      [domain, world, editable] = [baseName(newDomain), newWorld, canChange];
      if (svg) show(figure, svg);
      figure.dataset.world = shown;
      if (document.activeElement !== input) input.value = newWorld;
      draw();
    },
  };
}

/** The outline of a figure beside its name. */
function outline(words) {
  const figure = /^figure ([A-E])$/.exec(words);
  if (!figure) return null;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "-13 -13 26 26");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", FIGURES["ABCDE".indexOf(figure[1])]);
  svg.append(path);
  return svg;
}
