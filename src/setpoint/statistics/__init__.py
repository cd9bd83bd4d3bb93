"""Statistics that several rooms need: exact tests, bets, intervals, calibration."""
