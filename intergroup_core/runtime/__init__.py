"""The world outside the pure part: event loop, sockets, clocks."""
