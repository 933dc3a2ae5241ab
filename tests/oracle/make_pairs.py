#!/usr/bin/env python
"""Writes tests/testdata/pairs: sets of pairs as pickles, for the reader in data/pickled_pairs.h.

Run it again with NumPy 1, with NumPy 2 and with Python 2; from the repository's root:

    python tests/oracle/make_pairs.py

Each file has four pictures for two answers, True and False. A picture is a PGM of 2 x 1 pixels, whose
two bytes are 200 + 10 times its number and that and 1: above 127, so that text and bytes differ.
"""

import os
import pickle
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testdata", "pairs")
PICTURES = [b"P5\n2 1\n255\n" + bytes(bytearray([200 + 10 * i, 201 + 10 * i])) for i in range(4)]
SAME = [True, False]


def write(name, content, protocol):
    with open(os.path.join(FOLDER, name + ".bin"), "wb") as file:
        pickle.dump(content, file, protocol=protocol)


def main():
    if not os.path.isdir(FOLDER):
        os.makedirs(FOLDER)
    if sys.version_info[0] == 2:
        write("python2", (PICTURES, SAME), 2)
        return
    import numpy

    of_numpy = "numpy" + numpy.__version__.split(".")[0]
    arrays = [numpy.frombuffer(picture, dtype=numpy.uint8).copy() for picture in PICTURES]
    answers = numpy.array(SAME)
    for protocol in range(2, 6):
        write("bytes-%d" % protocol, (PICTURES, SAME), protocol)
        write("%s-arrays-%d" % (of_numpy, protocol), [arrays, answers], protocol)
        write("%s-bools-%d" % (of_numpy, protocol), (PICTURES, list(answers)), protocol)
    print("wrote", os.path.normpath(FOLDER))


main()
