// The side of the page, which a narrow screen shows only when it is asked for.

import { byId } from "./elements.js";

/** `close()` closes it; on a wide screen it stays. */
export function followSide() {
  const [side, opener, main] = [byId("side"), byId("open-side"), byId("main")];
  const set = (isOpen) => {
    side.classList.toggle("is-open", isOpen);
    opener.setAttribute("aria-expanded", String(isOpen));
    main.inert = isOpen;
  };
  const close = () => {
    if (!side.classList.contains("is-open")) return;
    set(false);
    opener.focus();
  };
  opener.addEventListener("click", () => {
    set(true);
    byId("close-side").focus();
  });
  byId("close-side").addEventListener("click", close);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) close();
  });
  document.addEventListener("pointerdown", (event) => {
    if (!side.contains(event.target)) close();
  });
  matchMedia("(min-width: 60rem)").addEventListener("change", () => set(false));
  return { close };
}
