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

/** Waits a number of milliseconds, unless the signal ends it. */
export function pause(time, signal) {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const timer = setTimeout(resolve, time);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

/** Asks the server, again where it says when to; what it refuses becomes an error with its words and its status. */
export async function ask(path, body, signal) {
  const options = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let response;
  try {
    response = await fetch(path, { ...options, signal });
  } catch (error) {
    throw error.name === "AbortError" ? error : new Error("The server does not answer. Is `vbsix serve` still running?");
  }
  const later = response.headers.get("Retry-After");
  if (later && signal) {
    await pause(1000 * Number(later), signal);
    return ask(path, body, signal);
  }
  const answer = await response.json().catch(() => ({}));
  signal?.throwIfAborted();
  if (!response.ok) throw Object.assign(new Error(answer.detail ?? `The server answered ${response.status}.`), { status: response.status });
  return answer;
}

/** A number between 0 and 1 in a few letters. */
export function share(value) {
  if (value >= 0.995) return "99+%";
  return value >= 0.01 ? `${Math.round(100 * value)}%` : value >= 0.001 ? `${(100 * value).toFixed(1)}%` : "<0.1%";
}
