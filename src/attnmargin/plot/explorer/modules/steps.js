// The steps of the guided tour, as JSON: the page without scripts tells them too.

/** @type {import("./tour.js").TourStep[]} */
export const TOUR_STEPS = [
  {
    "title": "One token wins",
    "text": "Attention looks at a sequence of tokens with a query, and gives each a share. Training turns the weights until one token gets everything: here the one with the star, which the head likes best.",
    "task": "press play and watch the bars; then drag the token with the star below another one, across the arrow of the head.",
    "state": {"data": {"X": [[[0.8, 0.45], [-0.3, 0.75], [0.25, -0.55], [-0.75, -0.15], [0.05, 0.2]]], "z": [[0.55, 0.6]], "y": [1], "v": [0.9, 0.15]}}
  },
  {
    "title": "Margin and support",
    "text": "Weights grow for ever in one direction: the shortest W that lifts the selected token one unit above all others. The band is that unit. Ringed tokens touch it; they alone hold the direction in place.",
    "task": "drag a token with a dashed ring: the band turns. Drag one without: nothing moves, until it touches the band.",
    "state": {"data": {"X": [[[0.9, 0.55], [0.35, -0.75], [-0.6, 0.5], [-0.75, -0.35]], [[0.15, 0.95], [-0.9, 0.25], [0.7, -0.45], [-0.2, -0.8]]], "z": [[0.8, 0.3], [-0.35, 0.75]], "y": [1, -1], "v": [0.75, 0.25]}}
  },
  {
    "title": "The start decides",
    "text": "The best tokens are not the only end: near another stable choice, training stays with it. The colours show what each start W(0) leads to; where they are darker, it is proved.",
    "task": "drag the small cross, the start, into another colour, then press play.",
    "map": true,
    "state": {"data": {"X": [[[-0.05, -0.8], [-0.2, 0.55], [0.5, -0.35], [0.8, -0.3]], [[-0.4, 0.85], [-0.9, 0.3], [0.1, -0.55], [0.4, 0.25]]], "z": [[0.4, 0.45], [0.7, -0.15]], "y": [1, -1], "v": [0.8, 0.2]}}
  },
  {
    "title": "Another optimiser",
    "text": "Each optimiser measures the length of W in a norm of its own, and maximises the margin in that norm. Here gradient descent and mirror descent with p = 1.5 begin at the same place and choose different tokens.",
    "task": "press play, then move p towards 2.",
    "state": {"data": {"X": [[[-0.45, 0.8], [-0.6, 0.4], [0.9, 0.35], [-0.7, -0.65]], [[0.8, 0.05], [-0.85, 0.1], [-0.15, 0.15], [0.8, -0.55]]], "z": [[-0.6, 0.35], [-0.7, 0.75]], "y": [1, -1], "v": [0.8, 0.2]}, "settings": {"method": "gd", "parameter": "W", "norm": "fro", "p": 3, "lr": 0.05, "normalize": true, "loss": "logistic"}, "second": {"method": "mirror", "parameter": "W", "norm": "fro", "p": 1.5, "lr": 0.05, "normalize": true, "loss": "logistic"}}
  },
  {
    "title": "Mixtures",
    "text": "A head that asks for a value between those of the tokens wants a mixture. With the squared loss the output should be 1, and no token has that score: weights stop growing, and attention stays shared.",
    "task": "choose the logistic loss: one token wins again.",
    "state": {"data": {"X": [[[0.8, 0.3], [-0.5, 0.6], [0.1, -0.7], [-0.6, -0.3]]], "z": [[0.6, 0.4]], "y": [1], "v": [2.0, 0.3]}, "settings": {"method": "gd", "parameter": "W", "norm": "fro", "p": 3, "lr": 0.1, "normalize": false, "loss": "squared"}}
  },
  {
    "title": "Next tokens",
    "text": "When the next token is one of those in the context, training learns for every last token which tokens stand above which. Tokens on a cycle share the attention; what stands higher takes it all.",
    "task": "add a line that turns the order of two tokens round, and watch them join.",
    "state": {"scene": "graph", "graph": "milk bread eggs then -> bread\nbread eggs then -> bread\nmilk eggs then -> milk\neggs milk then -> eggs\nmilk bread and -> milk\neggs bread milk and -> milk\nbread eggs and -> eggs"}
  }
]
;
