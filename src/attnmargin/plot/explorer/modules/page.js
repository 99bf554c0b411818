// The page: an explorer that begins with the state of its link, or with what the page was written for.
/** @import { State } from "./state.js" */
import { mountExplorer } from "./app.js";
import { decodeState } from "./link.js";

/** Start the page. */
export function startPage() {
  const root = document.getElementById("explorer");
  const given = document.getElementById("explorer-state");
  if (!root) return;
  const linked = location.hash.length > 1 ? decodeState(location.hash.slice(1)) : null;
  /** @type {Partial<State>} */
  const written = given?.textContent ? JSON.parse(given.textContent) : {};
  const explorer = mountExplorer(root, { state: linked ?? written, tour: root.dataset.tour !== "off" });
  addEventListener("hashchange", () => {
    const state = decodeState(location.hash.slice(1));
    if (state) explorer.set(state);
  });
  document.documentElement.classList.add("explored");
  Object.assign(window, { attnmargin: explorer });
}
