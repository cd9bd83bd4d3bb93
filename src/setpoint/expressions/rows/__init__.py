"""The rows that expressions look at: labels, events, groups, checked at the door."""
