#!/usr/bin/env python3
r"""Trains PyTorch on a folder of photographs with the recipe of `ringlet train`, and says what it learns: for the
accuracy beside Ringlet's. A line of JSON a seed.

The same: model and initialisation, batches, crop-flip (black around, an eighth of a side wide, a random cut, half of
them mirrored), normalisation, SGD with Nesterov's momentum and weight decay, one-cycle schedule, epochs. Other: the draws.

  python3 bench/peers/torch_train.py --model resnet20 --data DIR --image-size 32 --epochs 15 --seeds 1 2 3
  build/release/bin/ringlet train --model resnet20 --data DIR --image-size 32 --epochs 15 --augment crop-flip \
      --label-smoothing 0 --seed 1

DIR holds train/CLASS/* and test/CLASS/*. Pictures are kept in memory, decoded and resized, as with --cache memory.
"""

import argparse
import json
import pathlib
import sys
import time

import numpy
import torch
from PIL import Image
from torch import nn
from torch.nn import functional

import torch_steps

NORMALS = {
    "cifar-10": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}


def load(folder, side):
    """Pixels [N, 3, side, side] as bytes, as Resize(8/7 side) and CenterCrop(side) leave them; and labels."""
    images, labels = [], []
    classes = sorted(path.name for path in folder.iterdir() if path.is_dir())
    for label, name in enumerate(classes):
        for path in sorted((folder / name).iterdir()):
            picture = Image.open(path).convert("RGB")
            width, height = picture.size
            if (width, height) != (side, side):
                shorter = side * 8 // 7
                width, height = (shorter * edge // min(picture.size) for edge in picture.size)
                picture = picture.resize((width, height), Image.BILINEAR)
                left, top = round((width - side) / 2), round((height - side) / 2)
                picture = picture.crop((left, top, left + side, top + side))
            images.append(numpy.asarray(picture).transpose(2, 0, 1))
            labels.append(label)
    return torch.from_numpy(numpy.stack(images)), torch.tensor(labels), len(classes)


def crop_flip(images, generator):
    count, _, side, _ = images.shape
    edge = (side + 4) // 8
    padded = functional.pad(images, (edge, edge, edge, edge))
    down, right = torch.randint(0, 2 * edge + 1, (2, count), generator=generator).tolist()
    mirrored = (torch.rand(count, generator=generator) < 0.5).tolist()
    cuts = [padded[i, :, down[i]:down[i] + side, right[i]:right[i] + side] for i in range(count)]
    return torch.stack([cut.flip(2) if mirrored[i] else cut for i, cut in enumerate(cuts)])


def initialize(model):
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


def run(options, seed, train, test, classes):
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    layout = torch.channels_last
    model = torch_steps.resnet(options.model, classes)
    initialize(model)
    model = model.to(memory_format=layout)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9, weight_decay=options.weight_decay,
                                nesterov=True)
    images, labels = train
    steps = -(-len(labels) // options.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.lr, total_steps=options.epochs * steps,
                                                   cycle_momentum=False)
    mean, deviation = (torch.tensor(numbers).view(1, 3, 1, 1) * 255 for numbers in NORMALS[options.normalize])

    def pixels(batch):
        return ((batch - mean) / deviation).to(memory_format=layout)

    begin = time.perf_counter()
    for epoch in range(options.epochs):
        model.train()
        losses = 0.0
        order = torch.randperm(len(labels), generator=generator)
        for chosen in order.split(options.batch):
            # Bytes are cut, so that what is added around them is black: as torchvision and Ringlet have it.
            batch = pixels(crop_flip(images[chosen], generator))
            loss = functional.cross_entropy(model(batch), labels[chosen], label_smoothing=options.label_smoothing)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            losses += loss.item() * len(chosen)
        print(f"seed {seed}, epoch {epoch + 1} of {options.epochs}: loss {losses / len(labels):.4f}", file=sys.stderr,
              flush=True)
    seconds = time.perf_counter() - begin
    model.eval()

    def accuracy(images, labels):
        with torch.no_grad():
            right = sum((model(pixels(part)).argmax(1) == of).sum().item()
                        for part, of in zip(images.split(250), labels.split(250)))
        return round(right / len(labels), 4)

    return {"peer": "pytorch", "version": torch.__version__, "model": options.model, "seed": seed,
            "epochs": options.epochs, "lr": options.lr, "weight_decay": options.weight_decay,
            "label_smoothing": options.label_smoothing,
            "train_accuracy": accuracy(images, labels), "test_accuracy": accuracy(*test), "seconds": round(seconds, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("resnet18-cifar", "resnet18", "resnet20"), default="resnet20")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--image-size", type=int, required=True)
    parser.add_argument("--normalize", choices=NORMALS, default="cifar-10")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--weight-decay", type=float, default=5e-4)
    parser.add_argument("--label-smoothing", type=float, default=0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    images, labels, classes = load(options.data / "train", options.image_size)
    test = load(options.data / "test", options.image_size)[:2]
    for seed in options.seeds:
        print(json.dumps(run(options, seed, (images, labels), test, classes)), flush=True)


if __name__ == "__main__":
    main()
