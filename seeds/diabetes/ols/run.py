#!/usr/bin/env python3
# params: {}
"""Ordinary least squares on all features, solved by the normal equations."""

import argparse
import csv
import json
import math
import os


def mean(values):
    return math.fsum(values) / len(values)


def solve(matrix, right):
    size = len(right)
    rows = [list(row) + [value] for row, value in zip(matrix, right)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(i + 1, size):
            factor = rows[k][i] / rows[i][i]
            rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i])]
    answer = [0.0] * size
    for i in range(size - 1, -1, -1):
        known = math.fsum(rows[i][k] * answer[k] for k in range(i + 1, size))
        answer[i] = (rows[i][size] - known) / rows[i][i]
    return answer


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

    def rows(name):
        path = os.path.join(args.data, manifest["files"][name])
        with open(path, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    train, test = rows("train"), rows("test")
    targets = [float(row[manifest["target"]]) for row in train]
    centre = mean(targets)
    predictions = [centre] * len(test)
    if args.ablate != "features":
        # Scaled columns keep the normal equations well conditioned.
        columns, test_columns = [], []
        for name in manifest["features"]:
            values = [float(row[name]) for row in train]
            middle = mean(values)
            spread = math.sqrt(mean([(value - middle) ** 2 for value in values]))
            if spread < 1e-12:
                continue
            columns.append([(value - middle) / spread for value in values])
            test_columns.append([(float(row[name]) - middle) / spread for row in test])
        rest = [value - centre for value in targets]
        gram = [[sum(a * b for a, b in zip(one, two)) for two in columns] for one in columns]
        right = [sum(a * b for a, b in zip(column, rest)) for column in columns]
        weights = solve(gram, right)
        predictions = [
            centre + sum(weight * value for weight, value in zip(weights, row))
            for row in zip(*test_columns)
        ]
    with open(args.out, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(manifest["output"]["columns"])
        for row, prediction in zip(test, predictions):
            writer.writerow([row[manifest["id_column"]], repr(prediction)])


main()
