"""Cost of a step on a real machine: compute, memory, links, layouts."""
