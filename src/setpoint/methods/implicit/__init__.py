"""The implicit method: thresholds that follow the scores, by the implicit function theorem."""
