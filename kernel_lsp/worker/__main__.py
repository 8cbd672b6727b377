"""The worker process: started by its path in the user's interpreter, spoken to over standard input and output."""

import os
import runpy
import sys


def main() -> None:
    """Answer requests on standard input until it is closed; ``--give-way``: at a lower priority than other processes."""
    here = os.path.abspath(__file__)
    startup = runpy.run_path(os.path.join(os.path.dirname(os.path.dirname(here)), "startup.py"))
    startup["register_package"](here)
    requests, answers = startup["take_over_standard_streams"]()
    from kernel_lsp import child_processes
    from kernel_lsp.worker import manager

    if "--give-way" in sys.argv[1:]:
        child_processes.let_others_first()
    manager.run(requests, answers)


if __name__ == "__main__":
    main()
