// Corrections: was this right? If not, the world is corrected by hand, and both are saved as examples to learn from.

import { ask, h } from "./dom.js";
import { worldView } from "./worlds.js";

/** The form below the outcomes; `request` are the model, the world and the instructions, `outcome` the world they led to. */
export function feedbackForm(request, outcome, domain, picture) {
  const status = h("p", { className: "quiet", role: "status" });
  const title = h("h3", { id: "feedback-title" }, "Was this right?");
  const buttons = h("p", { className: "row" });
  const editor = h("div", { hidden: true });
  const element = h("section", { className: "feedback", "aria-labelledby": title.id }, title, buttons, editor, status);
  let target = outcome;

  async function save() {
    try {
      const { saved } = await ask("/api/feedback", { ...request, target });
      element.replaceChildren(title, h("p", { role: "status" }, `Saved. The file has ${saved} example${saved > 1 ? "s" : ""}.`));
    } catch (error) {
      complain(error);
    }
  }

  /** Names the world as the page does. */
  const complain = ({ message }) => (status.textContent = message.replace(/^(context|target): /, "Right world: "));

  async function correct() {
    const done = h("button", { type: "button", onclick: save, disabled: true }, "Save this world");
    const view = worldView("Right world", async (world) => {
      target = world; // the server checks it when it is saved: a target need not be a world to begin with
      done.disabled = world === outcome;
      try {
        const { pictures } = await ask("/api/parse", { model: request.model, context: world, instructions: [] });
        status.textContent = "";
        view.update(domain, world, pictures[world]);
      } catch (error) {
        complain(error);
      }
    });
    view.update(domain, outcome, picture);
    editor.replaceChildren(h("p", {}, "Change it to the world that should have come out:"), view.element, h("p", {}, done));
    editor.hidden = false;
  }

  buttons.append(
    h("button", { type: "button", onclick: save }, "Yes"),
    h("button", { type: "button", onclick: correct }, "No, correct it")
  );
  return element;
}
