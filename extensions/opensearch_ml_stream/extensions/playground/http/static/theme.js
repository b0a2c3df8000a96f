// The colours: the system's, or the chosen ones. `colours.js` sets them before the page is drawn.

import { byId } from "./elements.js";

const KEY = "playground.theme";

export function followTheme() {
  const choice = byId("theme");
  choice.value = document.documentElement.dataset.theme;
  choice.addEventListener("change", () => {
    document.documentElement.dataset.theme = choice.value;
    localStorage.setItem(KEY, choice.value);
  });
}
