"""Goodput, latency and memory of members in processes of their own, next to what bare sockets do in the same run."""
