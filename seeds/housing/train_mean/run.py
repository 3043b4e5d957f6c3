#!/usr/bin/env python3
# params: {}
"""Predicts the mean target of the training rows for every test row."""

import argparse
import csv
import json
import math
import os


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seed", type=int, required=True)
    # There is nothing to switch off: the control of the baseline is the baseline.
    parser.add_argument("--ablate")
    args = parser.parse_args()
    if args.ablate is not None and args.ablate != "none":
        parser.error("unrecognized arguments: --ablate " + args.ablate)

    with open(os.path.join(args.data, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)

    def rows(name):
        path = os.path.join(args.data, manifest["files"][name])
        with open(path, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    targets = [float(row[manifest["target"]]) for row in rows("train")]
    prediction = math.fsum(targets) / len(targets)
    with open(args.out, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(manifest["output"]["columns"])
        for row in rows("test"):
            writer.writerow([row[manifest["id_column"]], repr(prediction)])


main()
