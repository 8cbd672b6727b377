"""For which calls a kernel holds: conditions on inputs, modules and what forward reads beside them."""
