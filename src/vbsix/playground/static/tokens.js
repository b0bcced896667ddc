// The tokens of a command: pointing at one, or moving to it with arrow keys, shows which words the model attended to.

import { h } from "./dom.js";

const WORTH_A_NUMBER = 0.1;

/** The row of tokens and, where `attention(place)` gives a way to ask for it, the line for their attention. */
export function tokenRow(tokens, place, text, attention) {
  if (!attention(place)) return [h("code", {}, tokens.join(" "))];
  const line = h("span", { className: "attention", role: "status", hidden: true });
  const buttons = tokens.map((token, at) =>
    h("button", { type: "button", tabIndex: at ? -1 : 0, className: "token", onfocus: () => point(at), onpointerenter: () => point(at), onclick: () => point(at) }, token)
  );
  const label = `Command ${place + 1}: which words each token attends to`;
  const row = h("code", { className: "tokens", role: "toolbar", "aria-label": label }, buttons.flatMap((button, at) => (at ? [" ", button] : [button])));
  let pointed = null;

  async function point(at) {
    pointed = at;
    const found = await attention(place)?.();
    if (pointed !== at || !found) return;
    line.replaceChildren(`${tokens[at]} ← `, ...attended(text, found[at].weights));
    line.hidden = false;
    buttons.forEach((button, other) => button.classList.toggle("pointed", other === at));
  }

  function leave() {
    if (row.contains(document.activeElement)) return;
    pointed = null;
    line.hidden = true;
    buttons.forEach((button) => button.classList.remove("pointed"));
  }

  function move(event) {
    const from = buttons.indexOf(document.activeElement);
    const to = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (from < 0 || !buttons[to]) return;
    event.preventDefault();
    buttons.forEach((button, at) => (button.tabIndex = at === to ? 0 : -1));
    buttons[to].focus();
  }

  row.addEventListener("keydown", move);
  row.addEventListener("pointerleave", leave);
  row.addEventListener("focusout", ({ relatedTarget }) => row.contains(relatedTarget) || setTimeout(leave));
  return [row, line];
}

/** The words of an instruction, shaded by their weights; those of most weight with a number. */
function attended(text, weights) {
  return text.trim().split(/\s+/).flatMap((word, place) => {
    const weight = weights[place] ?? 0;
    const number = weight >= WORTH_A_NUMBER ? h("small", {}, ` ${Math.round(100 * weight)}%`) : "";
    const shaded = h("span", { className: "weighted" }, word, number);
    shaded.style.setProperty("--weight", `${Math.round(100 * weight)}%`);
    return [shaded, " "];
  });
}
