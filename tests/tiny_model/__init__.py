"""A tiny Llama of KernelLLM's architecture and prompt format that has learned kernels by heart."""
