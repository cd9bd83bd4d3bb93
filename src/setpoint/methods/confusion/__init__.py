"""Goals as functions of a confusion table by group, filled with hard or soft decisions."""
