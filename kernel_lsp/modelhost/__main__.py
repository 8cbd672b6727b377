"""The model host's process: started by its path in the interpreter that has transformers or llama-cpp-python."""

import os
import runpy


def main() -> None:
    """Answer requests on standard input until it is closed."""
    here = os.path.abspath(__file__)
    startup = runpy.run_path(os.path.join(os.path.dirname(os.path.dirname(here)), "startup.py"))
    startup["register_package"](here)
    requests, answers = startup["take_over_standard_streams"]()
    from kernel_lsp.modelhost import request_loop

    request_loop.run(requests, answers)


if __name__ == "__main__":
    main()
