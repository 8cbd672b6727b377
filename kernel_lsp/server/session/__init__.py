"""What goes on while the server runs: the state, the jobs, validation in the background, updates of what is shown."""
