// The explorer as an anywidget: its state and that of the notebook follow each other.
/** @import { State } from "./state.js" */
import { mountExplorer } from "./app.js";

/**
 * What anywidget hands over.
 * @typedef {{get: (name: string) => Partial<State>, set: (name: string, value: State) => void,
 *   save_changes: () => void, on: (event: string, seen: () => void) => void,
 *   off: (event: string, seen: () => void) => void}} Model
 */

/**
 * Show the explorer in an element; returns what removes it.
 * @param {{model: Model, el: HTMLElement}} given
 */
export function renderWidget({ model, el }) {
  const root = document.createElement("div");
  el.append(root);
  const explorer = mountExplorer(root, { state: model.get("state"), tour: false });
  let own = JSON.stringify(model.get("state"));
  explorer.watch((state) => {
    const text = JSON.stringify(state);
    if (text === own) return;
    own = text;
    model.set("state", state);
    model.save_changes();
  });
  const changed = () => {
    const text = JSON.stringify(model.get("state"));
    if (text === own) return;
    own = text;
    explorer.set(model.get("state"));
  };
  model.on("change:state", changed);
  return () => model.off("change:state", changed);
}
