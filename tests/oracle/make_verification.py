#!/usr/bin/env python3
"""Writes tests/testdata/oracle/verification.json: figures of verification by NumPy, for ours to equal.

Run it again with any NumPy; from the repository's root:

    python3 tests/oracle/make_verification.py

Distances are written down by the definitions in train/verification/figures.h, the folds as
scikit-learn's KFold cuts them. Nothing of Ringlet is in it. The cases: noise of several strengths, ties
(distances on a grid, some of them equal to thresholds), fewer pairs than folds, one kind alone, all
distances alike.
"""

import json
import pathlib

import numpy as np

FILE = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "oracle" / "verification.json"


def folds(count):
    number = min(10, count)
    sizes = np.full(number, count // number)
    sizes[: count % number] += 1
    ends = np.cumsum(sizes)
    return [np.arange(end - size, end) for end, size in zip(ends, sizes)]


def accuracy(distances, same, thresholds):
    results = []
    parts = folds(len(distances))
    for test in parts:
        train = np.setdiff1d(np.arange(len(distances)), test) if len(parts) > 1 else test
        of_train = [np.sum((distances[train] < t) == same[train]) for t in thresholds]
        best = thresholds[int(np.argmax(of_train))]
        results.append(np.mean((distances[test] < best) == same[test]))
    return {"mean": float(np.mean(results)), "deviation": float(np.std(results))}


def tar_at_far(distances, same, one_in):
    negative = np.sort(distances[~same])
    allowed = len(negative) // one_in
    if allowed < 1 or not same.any():
        return None
    return float(np.mean(distances[same] < negative[allowed]))


def figures(distances, same):
    unique = np.unique(distances)
    middles = np.concatenate([[0.0], unique[:-1] + (unique[1:] - unique[:-1]) / 2, [unique[-1] + 1]])
    return {
        "grid": accuracy(distances, same, np.arange(0, 400) * 0.01),
        "exact": accuracy(distances, same, middles),
        "true_accepts": [tar_at_far(distances, same, one_in) for one_in in (10, 100, 1000, 10000)],
    }


def cases(generator):
    for count, spread in ((6000, 0.35), (611, 0.8), (20, 0.5), (7, 0.5), (1, 0.5)):
        same = generator.random(count) < 0.5
        yield "noise", np.abs(np.where(same, 0.9, 1.8) + spread * generator.standard_normal(count)), same
    same = generator.random(400) < 0.5
    yield "ties", np.round(np.where(same, 1.0, 1.5) + 0.5 * generator.standard_normal(400), 1).clip(0), same
    yield "same", generator.random(30) * 2, np.ones(30, bool)
    yield "different", generator.random(30) * 2, np.zeros(30, bool)
    yield "alike", np.full(25, 1.0), np.arange(25) % 2 == 0


def main():
    generator = np.random.default_rng(33)
    written = []
    for name, distances, same in cases(generator):
        # Six decimals are read back as the same double, and ties stay ties.
        distances = np.round(distances, 6)
        written.append({"name": name, "distances": distances.tolist(),
                        "same": same.astype(int).tolist(), **figures(distances, same)})
    embeddings = np.round(generator.standard_normal((8, 5)) * 3, 4)
    embeddings[5] = 0  # of no length
    lengths = np.linalg.norm(embeddings, axis=1)
    unit = embeddings / np.maximum(lengths, 1e-12)[:, None]
    document = {
        "cases": written,
        "embeddings": embeddings.ravel().tolist(),
        "embedding_distances": np.sum((unit[0::2] - unit[1::2]) ** 2, axis=1).tolist(),
        "mean_length": float(np.mean(lengths)),
    }
    FILE.write_text(json.dumps(document, separators=(",", ":")) + "\n")
    print(f"wrote {FILE.name}: {FILE.stat().st_size} bytes")


main()
