"""What is known, as plain data: open documents, kernel files, jobs of this session, the state of a class."""
