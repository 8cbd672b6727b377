"""The server itself: how it is reached, its commands, and what it does when a job tells something."""
