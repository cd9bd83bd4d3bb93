"""Methods of restoration with a generative prior, and what they search over."""
