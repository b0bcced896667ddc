// The third view: what several models make of the same instructions.

import { h, share } from "./dom.js";
import { show } from "./worlds.js";

/** `answers` are [model, answer or error] of all models of the domain. */
export function drawComparison(panel, answers) {
  const read = answers.filter(([, answer]) => answer.readings?.length);
  const ends = read.map(([, answer]) => answer.readings[0].commands.at(-1).world);
  const commonest = ends.toSorted((one, other) => count(ends, other) - count(ends, one))[0];
  const agree = count(ends, commonest);
  const usual = agree > 1 ? commonest : null; // where no two agree, none is the odd one out
  panel.replaceChildren(
    h("h2", {}, "Models side by side"),
    h(
      "p",
      { className: "quiet" },
      answers.length < 2
        ? "Only one model of this world is here. Give more of them: vbsix serve RUN-1 RUN-2 MODEL.safetensors"
        : read.length
          ? `${usual ? `${agree} of ${answers.length}` : "No two"} models come to the same world.`
          : "Type an instruction to compare what the models make of it."
    ),
    h("div", { className: "models" }, answers.map(([model, answer]) => drawModel(model, answer, usual)))
  );
}

const count = (values, wanted) => values.filter((value) => value === wanted).length;

function drawModel(model, answer, usual) {
  const { method, steps, seed, data } = model.provenance;
  const about = h("p", { className: "quiet" }, `${method}, ${steps} steps, seed ${seed}, ${data}`);
  const article = h("article", { className: "model" }, h("h3", {}, model.name), about);
  const reading = answer.readings?.[0];
  if (!reading) {
    article.append(h("p", {}, answer.message ?? "No program was found."));
    return article;
  }
  const end = reading.commands.at(-1).world;
  const differs = usual !== null && end !== usual;
  const figure = h("figure", { className: "world" });
  show(figure, answer.pictures[end], { moving: false });
  article.classList.toggle("differs", differs);
  article.append(
    figure,
    h("p", {}, differs && h("mark", {}, "another world"), answer.understood ? ` confidence ${share(reading.confidence)}` : " not understood: a guess"),
    h(
      "ol",
      {},
      reading.commands.map(({ words, tokens }) =>
        h("li", {}, words ?? tokens.join(" "))
      )
    )
  );
  return article;
}
