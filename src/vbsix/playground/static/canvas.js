// A drawing that fits its frame, zooms (buttons, keys, Ctrl and wheel), pans (drag, arrow keys) and follows a slider.

import { h } from "./dom.js";

const FACTOR = 1.4;

/** `show(svg)` shows a drawing that fits; `follow(iteration)` marks a column and moves it into view. */
export function canvas(label) {
  const frame = h("div", { className: "drawing", tabIndex: 0, role: "region", "aria-label": label });
  const tools = h(
    "p",
    { className: "row tools" },
    button("−", "Zoom out", () => zoom(1 / FACTOR)),
    button("+", "Zoom in", () => zoom(FACTOR)),
    button("Fit", "Fit the whole drawing", fit),
    h("span", { className: "quiet" }, "Drag to move; Ctrl and wheel to zoom; keys: + − 0 and arrows.")
  );
  const element = h("div", { className: "canvas" }, tools, frame);
  let svg = null;
  let whole = { width: 1, height: 1 };
  let view = { x: 0, y: 0, width: 1, height: 1 };

  function button(text, title, onclick) {
    return h("button", { type: "button", title, "aria-label": `${label}: ${title.toLowerCase()}`, onclick }, text);
  }

  function apply() {
    svg?.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
  }

  function fit() {
    view = { x: 0, y: 0, ...whole };
    apply();
  }

  function zoom(factor, x = view.x + view.width / 2, y = view.y + view.height / 2) {
    const width = Math.min(Math.max(view.width / factor, 120), whole.width);
    const ratio = width / view.width;
    view = { x: x - (x - view.x) * ratio, y: y - (y - view.y) * ratio, width, height: view.height * ratio };
    keepInside();
  }

  function move(x, y) {
    view = { ...view, x: view.x + x, y: view.y + y };
    keepInside();
  }

  function keepInside() {
    view.x = Math.min(Math.max(view.x, 0), Math.max(whole.width - view.width, 0));
    view.y = Math.min(Math.max(view.y, 0), Math.max(whole.height - view.height, 0));
    apply();
  }

  /** How many units of the drawing a pixel is. */
  const unit = () => Math.max(view.width / frame.clientWidth, view.height / frame.clientHeight) || 1;

  frame.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    zoom(event.deltaY < 0 ? FACTOR : 1 / FACTOR, point.x, point.y);
  }, { passive: false });
  let held = null;
  frame.addEventListener("pointerdown", (event) => {
    held = [event.clientX, event.clientY];
    frame.setPointerCapture(event.pointerId);
  });
  frame.addEventListener("pointermove", (event) => {
    if (!held) return;
    move((held[0] - event.clientX) * unit(), (held[1] - event.clientY) * unit());
    held = [event.clientX, event.clientY];
  });
  for (const name of ["pointerup", "pointercancel"]) frame.addEventListener(name, () => (held = null));
  const keys = {
    "+": () => zoom(FACTOR),
    "=": () => zoom(FACTOR),
    "-": () => zoom(1 / FACTOR),
    0: fit,
    ArrowLeft: () => move(-view.width / 8, 0),
    ArrowRight: () => move(view.width / 8, 0),
    ArrowUp: () => move(0, -view.height / 8),
    ArrowDown: () => move(0, view.height / 8),
  };
  frame.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });

  return {
    element,
    show(markup) {
      frame.innerHTML = markup;
      svg = frame.querySelector("svg");
      whole = { width: svg.viewBox.baseVal.width, height: svg.viewBox.baseVal.height };
      svg.removeAttribute("width");
      svg.removeAttribute("height");
      fit();
    },
    follow(iteration) {
      if (!svg) return;
      const column = [...svg.querySelectorAll("[data-iteration]")];
      for (const card of column) card.classList.toggle("elsewhere", Number(card.dataset.iteration) !== iteration);
      const here = column.find((card) => Number(card.dataset.iteration) === iteration);
      if (!here || view.width >= whole.width) return;
      const { e: x } = here.transform.baseVal[0].matrix;
      view.x = x + 100 - view.width / 2;
      keepInside();
    },
  };
}
