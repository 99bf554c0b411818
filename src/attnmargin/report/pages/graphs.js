// Looks through the graphs of a page: layers of one graph, what a token dominates, what comes next.
"use strict";
(() => {
  const { names, graphs, rest, file } = JSON.parse(document.getElementById("graphs").textContent);
  const place = new Map(names.map((name, id) => [name, id]));
  const byLast = new Map(graphs.map((graph) => [graph.last, graph]));
  const $ = (id) => document.getElementById(id);
  const FIRST = 150;

  const element = (tag, kind, text) => {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // Components that are reached from one, along edges or against them.
  const reached = (graph, from, backwards) => {
    const next = new Map();
    graph.edges.forEach(([a, b]) => {
      const [tail, head] = backwards ? [b, a] : [a, b];
      if (!next.has(tail)) next.set(tail, []);
      next.get(tail).push(head);
    });
    const seen = new Set(), front = [from];
    while (front.length) {
      for (const other of next.get(front.pop()) || []) {
        if (!seen.has(other)) { seen.add(other); front.push(other); }
      }
    }
    return seen;
  };

  const groupsOf = (graph) => {
    const groups = graph.layers.map(() => []);
    graph.tokens.forEach((token, i) => groups[graph.components[i]].push(token));
    return groups;
  };

  let shown = null;

  const mark = (part, token) => {
    const down = reached(shown, part, false), up = reached(shown, part, true);
    document.querySelectorAll("#layers [data-part]").forEach((group) => {
      const own = Number(group.dataset.part);
      group.classList.toggle("here", own === part);
      group.classList.toggle("below", down.has(own));
      group.classList.toggle("above", up.has(own));
    });
    const sizes = groupsOf(shown).map((group) => group.length);
    const count = (parts) => [...parts].reduce((sum, p) => sum + sizes[p], 0);
    const peers = sizes[part] - 1;
    $("about").textContent = `After “${names[shown.last]}”, “${names[token]}” dominates ` +
      `${count(down)} tokens, is dominated by ${count(up)}` +
      (peers ? `, and shares its component with ${peers}.` : ".");
  };

  const layerRow = (graph, groups, layer, filter) => {
    const row = element("div", "layer");
    row.append(element("h3", "", `layer ${layer + 1}`));
    const parts = graph.layers.flatMap((own, part) => (own === layer ? [part] : []));
    const wanted = parts.filter((p) => groups[p].some((t) => names[t].includes(filter)));
    const list = element("div", "groups");
    const add = (some) => some.forEach((part) => {
      const group = element("span", groups[part].length > 1 ? "group" : "single");
      group.dataset.part = part;
      groups[part].slice(0, FIRST).forEach((token) => {
        const chip = element("button", "chip", names[token]);
        chip.addEventListener("click", () => mark(part, token));
        group.append(chip);
      });
      if (groups[part].length > FIRST) {
        group.append(element("small", "", `… ${groups[part].length - FIRST} more`));
      }
      list.append(group);
    });
    add(wanted.slice(0, FIRST));
    if (wanted.length > FIRST) {
      const more = element("button", "more", `show ${wanted.length - FIRST} more`);
      more.addEventListener("click", () => { more.remove(); add(wanted.slice(FIRST)); });
      row.append(list, more);
    } else row.append(list);
    return wanted.length ? row : null;
  };

  const show = () => {
    const asked = $("last").value;
    const id = place.has(asked) ? place.get(asked) : place.get(asked.trim());
    const graph = byLast.get(id);
    $("layers").replaceChildren();
    $("about").textContent = graph ? "Choose a token to see what it dominates."
      : id === undefined ? "This token is not in the vocabulary."
      : rest.includes(id) ? "The graph of this token was left out to keep the page small."
      : "No sequence ends with this token.";
    shown = graph || null;
    if (!graph) return;
    const groups = groupsOf(graph), depth = graph.layers.reduce((a, b) => Math.max(a, b), 0);
    for (let layer = 0; layer <= depth; layer++) {
      const row = layerRow(graph, groups, layer, $("filter").value.trim());
      if (row) $("layers").append(row);
    }
  };

  const quoted = (tokens) => tokens.map((token) => `“${names[token]}”`).join(", ");

  // Shares of tokens by how often they stand and by their soft logits.
  const composed = (ids, best, soft) => {
    const most = soft.reduce((a, b) => Math.max(a, b), -Infinity);
    const weight = best.map((token, i) =>
      ids.filter((id) => id === token).length * Math.exp(soft[i] - most));
    const total = weight.reduce((a, b) => a + b, 0);
    const parts = best.map((token, i) => [weight[i] / total, names[token]]);
    parts.sort((a, b) => b[0] - a[0]);
    return parts.map(([share, name]) => `“${name}” ${share.toFixed(4)}`).join(", ");
  };

  // The component that dominates all others of some tokens, or −1.
  const dominant = (graph, parts) => {
    const top = parts.reduce((a, b) => (graph.layers[b] < graph.layers[a] ? b : a));
    const down = reached(graph, top, false);
    return parts.every((part) => part === top || down.has(part)) ? top : -1;
  };

  // Where the graph leaves the order open: the logits of the max-margin direction.
  const byMargin = (graph, at, tokens, prompt) => {
    const strange = tokens.filter((token) => !at.has(token));
    const note = strange.length ? ` Never seen with this last token: ${quoted(strange)}.` : "";
    if (graph.hard === null) {
      return "The graph does not order all of these tokens, and is too large for the page to say " +
        `more. Ask: attnmargin graph ${file} --next "${prompt}"${note}`;
    }
    const hard = tokens.map((token) => (at.has(token) ? graph.hard[at.get(token)] : 0));
    const most = hard.reduce((a, b) => Math.max(a, b), -Infinity);
    const best = tokens.filter((token, i) => hard[i] > most - 1e-5);
    const why = "the graph does not order all of these tokens; the max-margin direction";
    return (best.length === 1 ? `${quoted(best)}: ${why} decides.`
      : `${quoted(best)}: ${why} does not tell them apart.`) + note;
  };

  // The rule of the automaton.
  const answer = (prompt) => {
    const words = prompt.trim().split(/\s+/).filter((word) => word);
    if (!words.length) return "";
    const unknown = words.find((word) => !place.has(word));
    if (unknown) return `“${unknown}” is not in the vocabulary.`;
    const ids = words.map((word) => place.get(word)), tokens = [...new Set(ids)];
    if (tokens.length === 1) return `${quoted(tokens)}: there is no other token.`;
    const last = ids[ids.length - 1], graph = byLast.get(last);
    if (!graph) {
      return rest.includes(last) ? `The graph of ${quoted([last])} was left out to keep the page small.`
        : `No sequence ends with ${quoted([last])}: nothing was learnt about it.`;
    }
    const at = new Map(graph.tokens.map((token, i) => [token, i]));
    if (tokens.some((token) => !at.has(token))) return byMargin(graph, at, tokens, prompt);
    const parts = tokens.map((token) => graph.components[at.get(token)]);
    const top = dominant(graph, parts);
    if (top < 0) return byMargin(graph, at, tokens, prompt);
    const best = tokens.filter((token, i) => parts[i] === top);
    const noise = graph.noise ? ` With probability ${graph.noise.toFixed(4)}, a random token of the ` +
      "sequence comes instead." : "";
    if (best.length === 1) return `${quoted(best)}, by retrieval: it dominates all others.${noise}`;
    const soft = best.map((token) => graph.soft[at.get(token)]);
    if (soft.some((x) => x === null)) return `A composition of ${quoted(best)}.`;
    return `${composed(ids, best, soft)}: a composition inside the dominant component.${noise}`;
  };

  $("last").addEventListener("input", show);
  $("filter").addEventListener("input", show);
  $("prompt").addEventListener("input", () => { $("answer").textContent = answer($("prompt").value); });
  show();
})();
