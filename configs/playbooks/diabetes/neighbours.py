# Kernel smoothing over the nearest training rows; features count by the strength of their
# correlation with the target.
{{prelude}}

NEIGHBOURS = {{neighbours}}
POWER = {{power}}


def predict(x_train, y_train, x_test, rng, ablate):
    x_train, x_test = standardise(x_train, x_test)
    power = 0.0 if ablate == "weights" else POWER
    strength = [max(abs(value), 1e-3) ** power for value in correlations(x_train, y_train)]

    def weighted(rows):
        return [[value * weight for value, weight in zip(row, strength)] for row in rows]

    x_train, x_test = weighted(x_train), weighted(x_test)
    count = min(NEIGHBOURS, len(x_train))
    predictions = []
    for row in x_test:
        near = sorted((math.dist(row, other), index) for index, other in enumerate(x_train))[:count]
        width = near[-1][0] or 1.0
        kernel = [(1.0 - 0.9 * (distance / width) ** 2, index) for distance, index in near]
        total = math.fsum(weight for weight, _ in kernel)
        predictions.append(math.fsum(weight * y_train[index] for weight, index in kernel) / total)
    return predictions


main({"weights"}, predict)
