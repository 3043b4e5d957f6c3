import argparse
import csv
import json
import math
import os
import random


def arguments(mechanisms):
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--ablate")
    args = parser.parse_args()
    if args.ablate is not None and args.ablate not in mechanisms:
        parser.error("unrecognized arguments: --ablate " + args.ablate)
    return args


def read_view(folder):
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    features, target = manifest["features"], manifest["target"]

    def rows(name):
        with open(os.path.join(folder, manifest["files"][name]), newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    train, test = rows("train"), rows("test")
    x_train = [[float(row[name]) for name in features] for row in train]
    y_train = [float(row[target]) for row in train]
    x_test = [[float(row[name]) for name in features] for row in test]
    ids = [row[manifest["id_column"]] for row in test]
    return manifest, x_train, y_train, x_test, ids


def mean(values):
    return math.fsum(values) / len(values)


def standardise(train, test):
    columns = list(zip(*train))
    centres = [mean(column) for column in columns]
    scales = []
    for column, centre in zip(columns, centres):
        spread = math.sqrt(math.fsum((value - centre) ** 2 for value in column) / len(column))
        scales.append(spread if spread > 1e-12 else 1.0)

    def scaled(rows):
        return [[(v - c) / s for v, c, s in zip(row, centres, scales)] for row in rows]

    return scaled(train), scaled(test)


def correlations(x, y):
    centre = mean(y)
    found = []
    for column in zip(*x):
        middle = mean(column)
        product = math.fsum((a - middle) * (b - centre) for a, b in zip(column, y))
        own = math.fsum((a - middle) ** 2 for a in column)
        other = math.fsum((b - centre) ** 2 for b in y)
        found.append(product / math.sqrt(own * other) if own > 1e-12 and other > 1e-12 else 0.0)
    return found


def solve(matrix, right):
    size = len(right)
    rows = [list(row) + [value] for row, value in zip(matrix, right)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        head = rows[i]
        if abs(head[i]) < 1e-12:
            continue
        for k in range(i + 1, size):
            factor = rows[k][i] / head[i]
            if factor != 0.0:
                rows[k] = [a - factor * b for a, b in zip(rows[k], head)]
    answer = [0.0] * size
    for i in range(size - 1, -1, -1):
        if abs(rows[i][i]) < 1e-12:
            continue
        known = math.fsum(rows[i][k] * answer[k] for k in range(i + 1, size))
        answer[i] = (rows[i][size] - known) / rows[i][i]
    return answer


def ridge(x, y, penalty):
    """Intercept and weights; columns of x need not be centred."""
    centre = mean(y)
    columns = [list(column) for column in zip(*x)]
    middles = [mean(column) for column in columns]
    centred = [[value - middle for value in column] for column, middle in zip(columns, middles)]
    rest = [value - centre for value in y]
    size = len(columns)
    gram = [[0.0] * size for _ in range(size)]
    for i in range(size):
        for k in range(i, size):
            gram[i][k] = gram[k][i] = sum(a * b for a, b in zip(centred[i], centred[k]))
        gram[i][i] += penalty
    right = [sum(a * b for a, b in zip(column, rest)) for column in centred]
    weights = solve(gram, right)
    return centre - sum(w * m for w, m in zip(weights, middles)), weights


def linear_prediction(intercept, weights, rows):
    return [intercept + sum(w * v for w, v in zip(weights, row)) for row in rows]


def trained(name, fit):
    """What fit() gives, from solution/weights/<name> if it is there: trained once per view."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "weights", name)
    if not os.path.exists(path):
        model = fit()
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(model, file)
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main(mechanisms, predict):
    args = arguments(mechanisms)
    manifest, x_train, y_train, x_test, ids = read_view(args.data)
    rng = random.Random(args.seed)
    predictions = predict(x_train, y_train, x_test, rng, args.ablate)
    {{fault}}
    with open(args.out, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(manifest["output"]["columns"])
        for key, value in zip(ids, predictions):
            writer.writerow([key, repr(float(value))])
    print("rows:", len(ids))
