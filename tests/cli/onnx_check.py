"""Has onnx's own checker look at a file: onnx_check.py MODEL.onnx. 77 where it is not installed."""
import sys

try:
    import onnx
except ImportError as error:
    print(f"needs Debian's python3-onnx ({error})")
    sys.exit(77)

model = onnx.load(sys.argv[1])
onnx.checker.check_model(model, full_check=True)
print(model.opset_import[0].version, model.ir_version, [node.op_type for node in model.graph.node])
