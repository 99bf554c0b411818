(() => {
  "use strict";
  const { words, heads, saturated, price } = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const percent = (x) => (x === null ? "–" : (100 * x).toFixed(x < 0.0995 ? 1 : 0) + " %");
  const digits = (x, n) => (x === null ? "–" : x.toFixed(n));
  const signed = (x) => (x === null ? "–" : (x < 0 ? "−" : "+") + Math.abs(x).toFixed(1));
  const cell = (x) => (x === null ? "" : Math.abs(x) < 9.95 ? x.toFixed(1) : x.toFixed(0));
  const views = [
    ["efficiency, z", (h) => h.efficiency.z, (x) => cell(x)],
    ["efficiency", (h) => h.efficiency.value, (x) => digits(x, 2).replace("0.", ".")],
    ["cosine, z", (h) => h.cosine.z, (x) => cell(x)],
    ["saturated", (h) => h.saturation.value, (x) => (x === null ? "" : (100 * x).toFixed(0))],
    ["entropy", (h) => h.entropy.value, (x) => digits(x, 2).replace("0.", ".")],
  ];
  if (price !== null) {
    const whole = (x) => (x === null ? "" : (100 * x).toFixed(0));
    views.push(["without slack, %", (h) => h.free.value, whole], ["token kept, %", (h) => h.kept.value, whole]);
  }
  if (heads.some((h) => h.wanted !== null && h.wanted !== undefined)) {
    views.unshift(["wanted pairs, %", (h) => h.wanted, (x) => (x === null ? "" : (100 * x).toFixed(0))]);
  }
  const known = views.filter((v) => heads.some((h) => v[1](h) !== null && v[1](h) !== undefined));
  let view = known[0];
  let chosen = 0;

  const make = (tag, kind, text) => {
    const node = document.createElement(tag);
    if (kind) node.className = kind;
    if (text !== undefined) node.textContent = text;
    return node;
  };

  const layers = [...new Set(heads.map((h) => h.layer))];
  const columns = [...new Set(heads.map((h) => h.head))].sort((a, b) => a - b);
  const buttons = [];

  function drawMap() {
    const map = find("map");
    map.replaceChildren();
    map.style.gridTemplateColumns = `auto repeat(${columns.length}, minmax(0, 1fr))`;
    const most = Math.max(...heads.map((h) => Math.abs(view[1](h) ?? 0)), 1e-9);
    map.append(make("span", "", ""));
    columns.forEach((c) => map.append(make("span", "", c)));
    layers.forEach((layer) => {
      map.append(make("span", "", layer));
      columns.forEach((column) => {
        const k = heads.findIndex((h) => h.layer === layer && h.head === column);
        if (k < 0) return map.append(make("span"));
        const value = view[1](heads[k]);
        const button = make("button", value < 0 ? "below" : "", view[2](value));
        button.type = "button";
        button.style.setProperty("--a", Math.abs(value ?? 0) / most);
        button.setAttribute("aria-label", `layer ${layer}, head ${column}, ${view[0]} ${view[2](value)}`);
        button.addEventListener("click", () => choose(k));
        buttons[k] = button;
        map.append(button);
      });
    });
  }

  function drawChoice() {
    known.forEach((own) => {
      const label = make("label");
      const radio = make("input");
      Object.assign(radio, { type: "radio", name: "view", checked: own === view });
      radio.addEventListener("change", () => { view = own; drawMap(); mark(); });
      label.append(radio, " " + own[0]);
      find("choice").append(label);
    });
  }

  function beside(measure, show) {
    if (measure.value === null) return "–";
    const interval = measure.low === null ? "" : ` (95 %: ${show(measure.low)} to ${show(measure.high)})`;
    const random = measure.null === null ? "" : `; random ${show(measure.null)}`;
    return show(measure.value) + interval + random + (measure.z === null ? "" : `, z ${signed(measure.z)}`);
  }

  function drawFacts(h) {
    const three = (x) => digits(x, 3);
    const facts = [
      [`Queries of which one token has more than ${+(100 * saturated).toPrecision(4)} %`, beside(h.saturation, percent)],
      ["Entropy, 1 is even attention", beside(h.entropy, three)],
      ["Efficiency: margin over the best margin", h.reason || beside(h.efficiency, three)],
      ["Cosine with the max-margin matrix", h.reason || beside(h.cosine, three)],
      ["Rank, and effective rank", `${h.norms.rank}, ${digits(h.norms.effective, 1)}`],
      ["Balance of W_K and W_Q, 0 is equal", digits(h.norms.balance, 3)],
    ];
    if (h.draws) {
      const answer = h.feasible < h.draws ? h.words || "not decided"
        : price === null ? "some W selects the same tokens" : "solved with slack";
      facts.push(["Queries asked by its attention SVMs", `${h.asked} in ${h.draws}: ${answer}`]);
    }
    if (price !== null && !h.reason) {
      facts.push(["Queries without slack in the solution", beside(h.free, percent)],
        ["Queries that keep their token there", beside(h.kept, percent)]);
    }
    find("facts").replaceChildren(...facts.map(([name, value]) => {
      const pair = make("div");
      pair.append(make("dt", "", name), make("dd", "", value));
      return pair;
    }));
  }

  function sentence(q) {
    const shares = new Map(q.attention), guards = new Map(q.guards);
    const line = make("p", "words");
    words[q.text].forEach((word, s) => {
      const joined = word.startsWith("##") && word.length > 2;
      const spaced = /^[Ġ▁]/.test(word);
      const wins = s === q.token, asks = s === q.query;
      const kinds = [joined && "on", asks && "asks", wins && "wins", guards.has(s) && !wins && "guards"].filter(Boolean);
      const node = make(wins ? "b" : "i", kinds.join(" "), joined ? word.slice(2) : spaced ? word.slice(1) || " " : word);
      const share = shares.get(s);
      if (share) node.style.setProperty("--a", share);
      node.title = `${s}: attention ${share ? percent(share) : "below 0.5 %"}` +
        (guards.has(s) ? `, ${percent(guards.get(s))} of the weight of all guards` : "");
      if (!joined) line.append(" ");
      line.append(node);
    });
    return line;
  }

  function drawShown(h) {
    find("shown").replaceChildren(...h.shown.map((q) => {
      const box = make("div", "query");
      const word = (s) => `“${words[q.text][s].replace(/^(##|[Ġ▁])/, "")}”`;
      const share = new Map(q.attention).get(q.token) ?? 0;
      const guards = q.guards.map(([s]) => word(s)).join(", ");
      box.append(make("p", "says",
        `Text ${q.text}: ${word(q.query)} selects ${word(q.token)} with ${percent(share)} of its attention` +
        (q.margin === null ? "" : `, by a margin of ${q.margin.toPrecision(3)}`) +
        (guards ? `; guarded by ${guards}.` : ".")), sentence(q));
      return box;
    }));
  }

  function mark() {
    buttons.forEach((button, k) => button.setAttribute("aria-pressed", k === chosen));
  }

  function choose(k) {
    chosen = (k + heads.length) % heads.length;
    const h = heads[chosen];
    find("name").textContent = `Layer ${h.layer}, head ${h.head}`;
    drawFacts(h);
    drawShown(h);
    mark();
    history.replaceState(null, "", `#${h.layer}.${h.head}`);
  }

  find("before").addEventListener("click", () => choose(chosen - 1));
  find("after").addEventListener("click", () => choose(chosen + 1));
  drawChoice();
  drawMap();
  const asked = heads.findIndex((h) => location.hash === `#${h.layer}.${h.head}`);
  const value = (h) => view[1](h) ?? -Infinity;
  const best = heads.reduce((top, h, k) => (value(h) > value(heads[top]) ? k : top), 0);
  choose(asked < 0 ? best : asked);
})();
