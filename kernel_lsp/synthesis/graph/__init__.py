"""What is computed: values, maps and the functions of elements, every shape symbolic."""
