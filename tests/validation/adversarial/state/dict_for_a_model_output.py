"""Returns a dict where the module returns a dataclass that is a dict as well."""

from tests.validation.adversarial.material import MODEL_OUTPUT, elementwise

MODULE = MODEL_OUTPUT
KERNEL = elementwise("Named", "x * 2").replace("        return y\n", '        return {"last": y}\n')
EXPECTED = {"wrong"}
