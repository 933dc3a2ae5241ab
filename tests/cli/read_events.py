"""Prints the scalars of a folder as TensorBoard itself reads them: "tag step value" a line."""

import logging
import sys

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError as error:
    print(f"TensorBoard is not installed (scripts/setup --dev): {error}")
    sys.exit(77)

logging.disable(logging.CRITICAL)
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
events.Reload()
for tag in sorted(events.Tags()["scalars"]):
    for scalar in events.Scalars(tag):
        print(tag, scalar.step, repr(scalar.value))
