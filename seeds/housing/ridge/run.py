#!/usr/bin/env python3
# params: {"penalty": 1.0}
"""Ridge regression on standardised features (numpy)."""

import argparse
import json
import os

import numpy as np

PENALTY = 1.0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--ablate")
    args = parser.parse_args()
    if args.ablate is not None and args.ablate != "features":
        parser.error("unrecognized arguments: --ablate " + args.ablate)

    with open(os.path.join(args.data, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)

    def table(name):
        with open(os.path.join(args.data, manifest["files"][name]), encoding="utf-8") as file:
            header = file.readline().strip().split(",")
            values = np.loadtxt(file, delimiter=",", ndmin=2)
        return {column: values[:, index] for index, column in enumerate(header)}

    train, test = table("train"), table("test")
    x_train = np.column_stack([train[name] for name in manifest["features"]])
    x_test = np.column_stack([test[name] for name in manifest["features"]])
    y_train = train[manifest["target"]]
    centre, scale = x_train.mean(axis=0), x_train.std(axis=0)
    scale = np.where(scale > 1e-12, scale, 1.0)
    x_train, x_test = (x_train - centre) / scale, (x_test - centre) / scale
    weights = np.zeros(x_train.shape[1])
    if args.ablate != "features":
        gram = x_train.T @ x_train + PENALTY * np.eye(x_train.shape[1])
        weights = np.linalg.solve(gram, x_train.T @ (y_train - y_train.mean()))
    predictions = np.clip(y_train.mean() + x_test @ weights, y_train.min(), y_train.max())
    ids = test[manifest["id_column"]].astype(np.int64).tolist()
    with open(args.out, "w", encoding="utf-8") as file:
        file.write(",".join(manifest["output"]["columns"]) + "\n")
        for key, value in zip(ids, predictions):
            file.write("%d,%r\n" % (key, float(value)))


main()
