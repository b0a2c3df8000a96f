// What survives a reload beside the conversations: the models, the settings, what was typed. In this browser alone.

const PREFIX = "playground.";

/** A kept value; `otherwise` where there is none. */
export function recall(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + name)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Keep a value; a browser that keeps nothing is used without. */
export function remember(name, value) {
  try {
    localStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // no storage, or no room
  }
}
