"""Kinds of decision rules, each with its search; the rule that was chosen; its certificate."""
