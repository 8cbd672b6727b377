"""One file for each thing that an editor asks for or is shown. Those with ``register`` answer requests."""
