"""Changes to the graph, and which values share a kernel."""
