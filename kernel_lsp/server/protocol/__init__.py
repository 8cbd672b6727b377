"""The language server protocol below the features: pygls with its traps closed, and what the client can do."""
