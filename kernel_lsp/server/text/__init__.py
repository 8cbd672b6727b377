"""All texts that are shown in the editor, made from plain data."""
