"""The transformer of paper B: model, training, analysis."""
