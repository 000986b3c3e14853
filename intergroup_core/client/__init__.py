"""What a local process uses to talk to its site's agent: small, synchronous, safe in a forked worker."""
