// The server's own figures, each second, for as long as somebody looks.

import { byId, number, showFigures } from "./elements.js";

const URL_OF_STATISTICS = "statistics";

/** Show the live figures of the sidecar while the page is visible. */
export function followStatistics() {
  const note = byId("live-note");
  let source = null;
  show({});
  const open = () => {
    source = new EventSource(URL_OF_STATISTICS);
    source.addEventListener("statistics", (event) => {
      note.hidden = true;
      show(JSON.parse(event.data));
    });
    source.onerror = () => {
      const isRefused = source.readyState === EventSource.CLOSED; // else the browser comes again by itself
      note.textContent = isRefused ? "These figures are not available to you." : "Waiting for the sidecar.";
      note.hidden = false;
      show({});
    };
  };
  const close = () => source?.close();
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);
  if (!document.hidden) open();
}

function show(statistics) {
  const perSecond = (value) => number(value === undefined || value === null ? null : Math.round(value * 10) / 10);
  showFigures(byId("live"), [
    ["Streams in flight", number(statistics.streams)],
    ["Requests a second", perSecond(statistics.requests_per_second)],
    ["Tokens a second", perSecond(statistics.tokens_per_second)],
  ]);
}
