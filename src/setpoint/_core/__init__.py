"""The ground floor: errors, array backends, files. Imports nothing of ours."""
