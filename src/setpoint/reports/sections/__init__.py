"""The sections of a report, each a record made from scored rows."""
