// Elements, and words to the server.

/** An element: h("button", { type: "button", onclick }, "text", child). Properties with a dash are attributes. */
export function h(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role") element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const $ = (id) => document.getElementById(id);

/** Asks the server; what it refuses becomes an error with its words. */
export async function ask(path, body, signal) {
  const options = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let response;
  try {
    response = await fetch(path, { ...options, signal });
  } catch (error) {
    throw error.name === "AbortError" ? error : new Error("The server does not answer. Is `vbsix serve` still running?");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.detail ?? `The server answered ${response.status}.`);
  return answer;
}

/** A function that asks anew each time and forgets the answers to older questions. */
export function latest() {
  let controller = new AbortController();
  return async (path, body) => {
    controller.abort();
    controller = new AbortController();
    return ask(path, body, controller.signal);
  };
}

/** A number between 0 and 1 in a few letters. */
export function share(value) {
  if (value >= 0.995) return "99+%";
  return value >= 0.01 ? `${Math.round(100 * value)}%` : value >= 0.001 ? `${(100 * value).toFixed(1)}%` : "<0.1%";
}
