"""Who sends in a group: bootstrap, voluntary joins and leaves, and repair when members fail (T5)."""
