"""The paper's experiments: what was run, on what, how, and what came out."""
