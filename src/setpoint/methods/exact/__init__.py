"""The exact method: memberships are variables, tied to the step by an exact penalty."""
