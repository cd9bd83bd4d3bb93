"""Files that the commands read and write: run folders, rules, tables in chunks."""
