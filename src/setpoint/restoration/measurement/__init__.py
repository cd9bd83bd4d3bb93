"""The measurement: what was seen, by which operator, with which noise."""
