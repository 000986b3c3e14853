"""`intergroup bench spark`: the source next to others in the same session."""
