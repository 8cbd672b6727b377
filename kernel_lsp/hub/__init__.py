"""Getting a model: what is known, what is here, what fits, and how to fetch and remove it.

``catalogue``, ``cache``, ``choosing``, ``listing`` and ``memory`` need the standard library alone and are cheap;
``pulling``, ``fetching`` and ``removing`` import huggingface_hub, inside functions.
"""
