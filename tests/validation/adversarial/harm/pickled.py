"""Has torch.load run what a pickle says: it writes outside."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import io, pathlib

    class Reduced:
        def __reduce__(self):
            return pathlib.Path.write_text, (pathlib.Path("@outside@/@token@"), "planted")
    """,
    first="""
    text = io.BytesIO()
    torch.save(Reduced(), text)
    text.seek(0)
    torch.load(text, weights_only=False)
    """,
)
EXPECTED = STOPPED
