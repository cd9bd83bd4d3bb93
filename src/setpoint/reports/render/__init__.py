"""Reports as page, text and model card; figures as SVG. Records in, markup out."""
