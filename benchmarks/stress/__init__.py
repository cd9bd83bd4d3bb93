"""Plain training loops with defaults, drawn at random: who collapses, who keeps constraints."""
