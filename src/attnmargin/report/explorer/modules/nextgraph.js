// The scene of token-priority graphs: contexts and next tokens in, graphs and answers out.

/** What the text field holds at first. */
export const GRAPH_DEFAULT = "";

/** Show the graphs of a text; `change({graph})` is called after every edit of it.
 * @param {(part: {graph: string}) => void} change
 * @returns {{element: HTMLElement, update: (state: {graph: string}) => void}} */
export function graphScene(change) {
  return { element: document.createElement("section"), update: () => change({ graph: "" }) };
}
