"""Networks under a goal: phases by method, and the exact problem over all rows."""
