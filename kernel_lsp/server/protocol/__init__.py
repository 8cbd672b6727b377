"""The language server protocol below the features: pygls with several of its behaviours overridden, and what the client can do."""
