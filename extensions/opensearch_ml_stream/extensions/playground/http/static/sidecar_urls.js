// How a program reaches the sidecar that served this page.

export const ASKS_FOR_LOGIN = document.documentElement.dataset.login === "asked";

/** The whole URL of a path that is relative to the page. */
export const absolute = (path) => new URL(path, document.baseURI).href;
