"""What the members of a group know of it because all of them were told in the same order."""
