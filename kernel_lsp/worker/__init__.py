"""The process in the user's interpreter, the processes that it forks, and the protocol that it speaks; docs/architecture.md."""
