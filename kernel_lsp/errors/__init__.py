"""One exception class per user error, each with one message template: what happened, where, what to do.

The standard library alone: both sides of the wire raise these. On the wire an error is
``{"code": <class name>, "message": <text>, "where": {"path", "line"} | None, "data": {…}}``. Each theme has a file; all of their
classes are had from here, and ``from_json`` knows them because this imports them.
"""

from .base import *  # noqa: F403
from .evaluation import *  # noqa: F403
from .hub import *  # noqa: F403
from .kernels import *  # noqa: F403
from .language_models import *  # noqa: F403
from .machine import *  # noqa: F403
from .module import *  # noqa: F403
from .project import *  # noqa: F403
from .store import *  # noqa: F403
