"""Checks a model of Fashion-MNIST's first 60000 pictures against numpy.

usage: oracle.py DIRECTORY

Reads from the directory what SQL wrote: mean, basis, rotation and covariance (one array
each, as text), codes (id, code) of some pictures, and info (explained_variance); and basis and
rotation of a model that balances its bits, with what sketcher_info says of the balance.  Prints TAP lines.
"""
import csv
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "demo"))
import fashion  # noqa: E402

tests = 0


def ok(passed, name):
    global tests
    tests += 1
    print(f"{'ok' if passed else 'not ok'} {tests} - {name}")


def read_array(name):
    with open(os.path.join(sys.argv[1], name)) as file:
        return np.array(eval(file.read().replace("{", "[").replace("}", "]")))


pixels = fashion.images()[:fashion.TRAINING].astype(np.float64)
mean, basis, rotation, covariance = map(read_array, ("mean", "basis", "rotation", "covariance"))
bits = len(basis)

ok(np.allclose(mean, pixels.mean(axis=0), rtol=1e-5, atol=1e-4), "the mean is numpy's")
ok(np.abs(basis @ basis.T - np.eye(bits)).max() < 1e-5, "the basis is orthonormal")
ok(np.abs(rotation @ rotation.T - np.eye(bits)).max() < 1e-5, "the rotation is orthogonal")

centred = pixels - pixels.mean(axis=0)
scatter = centred.T @ centred
eigenvalues = np.linalg.eigvalsh(scatter)
explained = np.trace(basis @ scatter @ basis.T) / np.trace(scatter)
best = eigenvalues[-bits:].sum() / np.trace(scatter)
ok(explained > 0.995 * best, f"the basis explains {explained:.4f} of the variance, principal components {best:.4f}")
told = float(read_array("info"))
ok(abs(told - explained) < 0.01, f"sketcher_info says {told:.4f}")

projected = basis @ scatter @ basis.T / len(pixels)
ok(np.abs(covariance - projected).max() < 0.05 * projected.max(), "the covariance is that of the projections, nearly")

turned = read_array("balanced_rotation") @ read_array("balanced_basis")
variances = np.diag(turned @ scatter @ turned.T)
worst = np.abs(variances / variances.mean() - 1).max()
ok(worst < 0.06, f"with unifdiag all bits have the same variance, to {worst:.3f}")
told = float(read_array("balanced_info"))
ok(abs(told - worst) < 0.005, f"sketcher_info says {told:.3f}")

differing = total = 0
with open(os.path.join(sys.argv[1], "codes"), newline="") as file:
    for picture, code in csv.reader(file):
        bits_by_hand = rotation @ (basis @ (pixels[int(picture) - 1] - mean)) >= 0
        differing += sum(bit != (by_hand and "1" or "0") for bit, by_hand in zip(code, bits_by_hand))
        total += bits
ok(total > 0 and differing <= total / 1000, f"codes are the signs of R W (x - mean): {differing} of {total} bits differ")
print(f"1..{tests}")
