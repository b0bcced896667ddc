// A drawing that fits its frame, zooms (buttons, keys, Ctrl and wheel), pans (drag, arrow keys) and follows a slider.

import { h } from "./dom.js";

const FACTOR = 1.4;
const READABLE = 1.8; // units of the drawing for each pixel

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
  let view = { x: 0, y: 0, width: 1, height: 1 }; // its height follows from the frame

  function button(text, title, onclick) {
    return h("button", { type: "button", title, "aria-label": `${label}: ${title.toLowerCase()}`, onclick }, text);
  }

  /** Height by width of the frame; of a frame that is not shown yet, a guess. */
  const ratio = () => frame.clientHeight / frame.clientWidth || 0.6;
  /** So wide that all of the drawing is in view. */
  const widest = () => Math.max(whole.width, whole.height / ratio());

  function fit() {
    view = { x: 0, y: 0, width: widest(), height: widest() * ratio() };
    keepInside();
  }

  /** The start of the drawing in letters that can be read. */
  function begin() {
    const width = Math.min(widest(), READABLE * (frame.clientWidth || 600));
    view = { x: 0, y: 0, width, height: width * ratio() };
    view.y = (whole.height - view.height) / 2;
    keepInside();
  }

  function zoom(factor, x = view.x + view.width / 2, y = view.y + view.height / 2) {
    const width = Math.min(Math.max(view.width / factor, 120), widest());
    const scale = width / view.width;
    view = { x: x - (x - view.x) * scale, y: y - (y - view.y) * scale, width, height: width * ratio() };
    keepInside();
  }

  function move(x, y) {
    view = { ...view, x: view.x + x, y: view.y + y };
    keepInside();
  }

  function keepInside() {
    const inside = (at, size, all) => (size >= all ? (all - size) / 2 : Math.min(Math.max(at, 0), all - size));
    view.x = inside(view.x, view.width, whole.width);
    view.y = inside(view.y, view.height, whole.height);
    svg?.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
  }

  /** How many units of the drawing a pixel is. */
  const unit = () => view.width / frame.clientWidth || 1;

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
      begin();
    },
    opened: begin,
    follow(iteration) {
      if (!svg) return;
      const column = [...svg.querySelectorAll("[data-iteration]")];
      for (const card of column) card.classList.toggle("elsewhere", Number(card.dataset.iteration) !== iteration);
      const here = column.find((card) => Number(card.dataset.iteration) === iteration);
      if (!here || view.width >= widest()) return;
      const heights = column.filter((card) => Number(card.dataset.iteration) === iteration).map((card) => place(card).y);
      view.x = place(here).x + 100 - view.width / 2;
      view.y = (Math.min(...heights) + Math.max(...heights)) / 2 + 60 - view.height / 2;
      keepInside();
    },
  };
}

/** Where a card is in the drawing: its own place, and those of the groups around it. */
function place(card) {
  let [x, y] = [0, 0];
  for (let element = card; element.tagName === "g"; element = element.parentNode) {
    const { e = 0, f = 0 } = element.transform.baseVal[0]?.matrix ?? {};
    [x, y] = [x + e, y + f];
  }
  return { x, y };
}
