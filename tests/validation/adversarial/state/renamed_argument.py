"""Its forward calls the input by another name, so that a call by name fails."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax().replace("def forward(self, x):", "def forward(self, given):\n        x = given")
EXPECTED = {"not-drop-in"}
