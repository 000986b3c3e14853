"""The way of data through one member in an epoch."""
