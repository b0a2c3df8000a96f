// Who is logged in, and how to log out.

import { call } from "./api.js";
import { byId, make } from "./elements.js";

/** Show the user's name; nothing where nobody logs in. */
export async function showUser() {
  const { name, roles, asks_for_login: asks } = await call("user");
  const place = byId("user");
  if (!asks) return;
  const leave = make("a", { href: `logout?user=${encodeURIComponent(name)}` }, "Log out");
  place.replaceChildren(make("span", { className: "user-name", title: roles.join(", ") }, name || "Logged in"), leave);
  place.hidden = false;
}
