"""What goes on while the server runs: the state, the jobs, what is validated in the background, what is shown anew."""
