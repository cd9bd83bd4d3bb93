"""Proof: tests of constraints, the order of tests, margins, rows needed for a proof."""
