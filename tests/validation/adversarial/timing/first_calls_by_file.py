"""Is right in the first forty calls that all of its processes make together, counted in its own file."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, VALIDATED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="import pathlib",
    first="""
    count = pathlib.Path(__file__ + ".count")
    calls = int(count.read_text()) + 1 if count.exists() else 1
    count.write_text(str(calls))
    validated = calls <= 12
    """,
    last=VALIDATED,
)
EXPECTED = CAUGHT
