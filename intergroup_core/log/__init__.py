"""The stable log: what a member delivered, durable and in order, over a Disk port."""
