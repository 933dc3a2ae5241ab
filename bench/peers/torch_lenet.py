"""Times PyTorch on the very work of `ringlet bench train --model lenet-d2l`, or of a ResNet.

Prints a line of JSON a row: strict f32, TF32, bf16 by autocast, and for ResNets f16 by autocast with a scaled loss, in the
memory format that is faster; what fails is a row with "error", and the
others go on. The batches are different random pixels that lie on the device, so that nothing but the training step is timed.

  eager           as it is written
  graph           the eager step captured as one CUDA graph
  compiled        torch.compile of the network and its loss
  compiled-graph  that, captured as one CUDA graph
"""

import argparse
import json
import statistics
import time

import torch
from torch import nn

BATCHES_IN_TURN = 8
MODELS = ("lenet-d2l", "resnet18-cifar", "resnet18", "resnet20")
NARROW = {"bf16": torch.bfloat16, "f16": torch.float16}


def lenet(device):
    return nn.Sequential(
        nn.Conv2d(1, 20, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)


def captured(step, warm_up, images, labels):
    """The step as a CUDA graph on tensors of its own, which each call fills."""
    x, y = images[0].clone(), labels[0].clone()
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for i in range(warm_up):
            step(images[i % BATCHES_IN_TURN], labels[i % BATCHES_IN_TURN])
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(x, y)

    def replay(new_x, new_y):
        x.copy_(new_x)
        y.copy_(new_y)
        graph.replay()

    return replay


def usual_shape(model_name):
    side = 224 if model_name == "resnet18" else 32
    return (1, 28, 28) if model_name == "lenet-d2l" else (3, side, side)


def work(model_name, options, layout):
    """The model, and the optimiser's recipe."""
    if model_name == "lenet-d2l":
        return lenet(options.device), {"lr": 0.2}
    import torch_steps  # which has its models from here
    model = torch_steps.resnet(model_name, 10).to(options.device).to(memory_format=layout)
    return model, {"lr": 0.1, "momentum": 0.9, "weight_decay": 5e-4, "nesterov": True}


def measure(model_name, batch, shape, precision, mode, layout, options):
    device, tf32 = options.device, precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True
    model, recipe = work(model_name, options, layout)
    criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), **recipe)
    scaler = torch.amp.GradScaler(device, enabled=precision == "f16")
    images = [torch.rand(batch, *shape, device=device).to(memory_format=layout) for _ in range(BATCHES_IN_TURN)]
    labels = [torch.randint(0, 10, (batch,), device=device) for _ in range(BATCHES_IN_TURN)]
    synchronize = torch.cuda.synchronize if device == "cuda" else lambda: None

    def loss(x, y):
        # A captured step casts the weights itself: what autocast keeps for later would not be there.
        keeps = not mode.endswith("graph")
        with torch.autocast(device, NARROW.get(precision, torch.bfloat16), enabled=precision in NARROW, cache_enabled=keeps):
            return criterion(model(x), y)

    # Compiled for this batch, as Ringlet's kernels are chosen for it.
    forward = torch.compile(loss, dynamic=False) if mode.startswith("compiled") else loss

    def step(x, y):
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(forward(x, y)).backward()
        scaler.step(optimizer)
        scaler.update()

    run = captured(step, options.warm_up, images, labels) if mode.endswith("graph") else step
    for i in range(options.warm_up):
        run(images[i % BATCHES_IN_TURN], labels[i % BATCHES_IN_TURN])
    synchronize()
    seconds = []
    for _ in range(5):  # steps are not waited for one by one: a queue of them, five times
        start = time.perf_counter()
        for i in range(options.steps):
            run(images[i % BATCHES_IN_TURN], labels[i % BATCHES_IN_TURN])
        synchronize()
        seconds.append((time.perf_counter() - start) / options.steps)
    median = statistics.median(seconds)
    return {"milliseconds": 1e3 * median, "samples_per_second": batch / median}


def faster(rows):
    """Of a row in each memory format: the faster one, or why there is none."""
    done = [row for row in rows if "error" not in row]
    return min(done, key=lambda row: row["milliseconds"]) if done else rows[0]


def guarded(row, *arguments):
    try:
        return {**row, **measure(*arguments)}
    except Exception as error:  # pylint: disable=broad-except  # one way that fails must not cost the others
        return {**row, "error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}


def cases_of(text):
    cases = []
    for case in text.split(","):
        model, batch, shape = case.split(":")
        if model not in MODELS:
            raise argparse.ArgumentTypeError(f"{model} is none of {', '.join(MODELS)}")
        cases.append((model, int(batch), tuple(map(int, shape.split("x")))))
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modes", default="eager,graph,compiled,compiled-graph", help="comma-separated [%(default)s]")
    parser.add_argument("--model", choices=MODELS, default="lenet-d2l")
    parser.add_argument("--cases", type=cases_of, help="MODEL:BATCH:CxHxW, comma-separated, instead of --model and --batches")
    parser.add_argument("--precisions", help="comma-separated, of f32, tf32, bf16, f16 [the first three; all for ResNets]")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--batches", default="256,32,4096", help="comma-separated [%(default)s]")
    parser.add_argument("--warm-up", type=int, default=50)
    parser.add_argument("--steps", type=int, default=300, help="of each of five rounds, whose median counts [%(default)s]")
    options = parser.parse_args()
    precisions = options.precisions or ("f32,tf32,bf16" if options.model == "lenet-d2l" else "f32,tf32,bf16,f16")
    shape = usual_shape(options.model)
    rows = [(options.model, batch, shape, precision) for batch in map(int, options.batches.split(","))
            for precision in precisions.split(",")]
    if options.cases:  # a precision of all models before the next one
        rows = [(*case, precision) for precision in precisions.split(",") for case in options.cases]
    for mode in options.modes.split(","):
        for model, batch, shape, precision in rows:
            row = {"who": f"torch {torch.__version__.split('+')[0]}", "mode": mode, "batch": batch, "precision": precision,
                   "model": model, "image_shape": list(shape)}
            layouts = {"nchw": torch.contiguous_format, "nhwc": torch.channels_last}
            if model == "lenet-d2l":
                layouts.pop("nhwc")
            print(json.dumps(faster([guarded({**row, "layout": name}, model, batch, shape, precision, mode, layout, options)
                                     for name, layout in layouts.items()])), flush=True)


if __name__ == "__main__":
    main()
