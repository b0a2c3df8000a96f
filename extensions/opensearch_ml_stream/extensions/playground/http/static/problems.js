// Errors in sentences: what happened, and what to do about it. What the server said stands folded below.

import { make } from "./elements.js";

const PERMISSION = /no permissions for \[([^\]]+)\]/;

/** `{what, advice}` of an error; one that was kept, or that the page knows better, has them. */
export function explained(error) {
  if (error.what) return error;
  const { status, message, providerStatus, retryAfter, isBroken } = error;
  if (isBroken) return { what: "The answer broke off before its end.", advice: "What has arrived is kept. Try again." };
  if (status === undefined) return { what: "The page made a mistake.", advice: `Reload it. (${message})` };
  if (status === null) {
    return /does not respond/.test(message)
      ? { what: "The sidecar does not respond.", advice: "See whether it runs and whether this browser can reach it, then try again." }
      : { what: sentence(message), advice: "" };
  }
  if (status === 401) return { what: "You are not logged in any more.", advice: "Reload the page to log in." };
  if (status === 403) {
    const action = PERMISSION.exec(message)?.[1];
    return {
      what: "You may not do this.",
      advice: action ? `Ask whoever runs this server for a role with the permission ${action}.` : sentence(message),
    };
  }
  if (status === 413) return { what: "This is more than the sidecar takes at once.", advice: "Remove an attachment, or begin a new conversation." };
  if (status === 424) return ofProvider(providerStatus, message);
  if (status === 429) return { what: "Too much for now.", advice: `${sentence(message)} ${retryAfter ? `Try again in ${retryAfter} s.` : "Try again later."}` };
  if (status === 503) return { what: "The sidecar cannot do this at the moment.", advice: `${sentence(message)} Try again in a while.` };
  return { what: sentence(message), advice: "" };
}

function ofProvider(status, message) {
  const said = ofRemote(status, message);
  if (status === 401 || status === 403) return { what: "The provider did not accept the model's key.", advice: `Give the model another one under Models. ${said}` };
  if (status === 404) return { what: "The provider does not know this model.", advice: `See which name and endpoint the model has under Models. ${said}` };
  if (status === 429) return { what: "The provider has had enough requests for now.", advice: `Try again later, or with another model. ${said}` };
  return { what: "The provider did not answer as it should.", advice: `Try again, or test the model under Models. ${said}` };
}

/** What a provider said with its status, else what the sidecar says of the call. */
function ofRemote(status, text) {
  const said = text.replace(/^Error from remote service: /, "");
  return status && !said.startsWith("Remote service returned") ? `The provider says: “${said}”` : sentence(said);
}

const sentence = (text) => (/[.!?…]$/.test(text) ? text : `${text}.`);

/** The error as an element, with a heading that says what it means for what is around it. */
export function problemOf(error, heading = "") {
  const { what, advice } = explained(error);
  const parts = [make("p", {}, make("strong", {}, heading ? `${heading} ` : ""), what), ...(advice ? [make("p", {}, advice)] : [])];
  if (error.status || error.raw) { // else nothing but the page said something
    const raw = [error.status && `Status ${error.status}`, error.raw || error.message].filter(Boolean).join("\n");
    parts.push(make("details", {}, make("summary", {}, "What the server said"), make("pre", { tabIndex: 0 }, raw)));
  }
  return make("div", { className: "problem", role: "alert" }, ...parts);
}

/** Put the error into a place, in the stead of the one that was there. */
export function showError(place, error, heading = "") {
  place.replaceChildren(problemOf(error, heading));
}
