"""Paper D: signed frequencies of tokens, the model, its first step, and the flow of ⟨cls⟩."""
