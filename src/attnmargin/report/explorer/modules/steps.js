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
  }
]
;
