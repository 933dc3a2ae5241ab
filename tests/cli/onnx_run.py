"""Runs an ONNX file in ONNX Runtime and compares its logits with Ringlet's.

onnx_run.py MODEL.onnx IMAGES LOGITS: IMAGES are bytes [N, 1, 28, 28], LOGITS f32 [N, 10]. Prints the
largest difference over the largest logit; 77 where ONNX Runtime is not installed.
"""
import sys

try:
    import numpy as np
    import onnxruntime
except ImportError as error:
    print(f"needs ONNX Runtime ({error}): scripts/setup --dev brings it")
    sys.exit(77)

model, images, logits = sys.argv[1:]
x = np.fromfile(images, np.uint8).reshape(-1, 1, 28, 28).astype(np.float32)
expected = np.fromfile(logits, np.float32).reshape(-1, 10)
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
(given,) = session.get_inputs()
(taken,) = session.get_outputs()
assert (given.name, given.type, given.shape) == ("image", "tensor(float)", ["N", 1, 28, 28]), given
assert (taken.name, taken.type, taken.shape) == ("logits", "tensor(float)", ["N", 10]), taken
metadata = session.get_modelmeta().custom_metadata_map
assert metadata["ringlet.input"] == "[1,28,28]", metadata
actual = session.run(["logits"], {"image": x})[0]
one = session.run(["logits"], {"image": x[3:4]})[0]
assert np.allclose(one, actual[3:4], atol=1e-4), "a batch of one gives something else"
print(np.abs(actual - expected).max() / max(1, np.abs(expected).max()))
