"""Jobs that several commands do: fit a file, score, decide or judge rows with a run."""
