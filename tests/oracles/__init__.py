"""Independent references: small nasty data, and every value computed without the library."""
