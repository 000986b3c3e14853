"""What `intergroup demo` runs: senders and a Spark query on this machine, and a check of what the query said."""
