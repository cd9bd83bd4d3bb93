"""The main job for real targets: their scale, members, networks and comparison."""
