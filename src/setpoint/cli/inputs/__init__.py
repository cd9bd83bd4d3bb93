"""From options and files to the rows, labels and images that the library takes."""
