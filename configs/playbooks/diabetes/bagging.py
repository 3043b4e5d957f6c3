# The average of ridge regressions, each on a bootstrap sample of the rows and a part of the
# features.
{{prelude}}

BAGS = {{bags}}
PENALTY = {{penalty}}
WIDTH = {{width}}


def predict(x_train, y_train, x_test, rng, ablate):
    x_train, x_test = standardise(x_train, x_test)
    features = len(x_train[0])
    if ablate == "bags":
        intercept, weights = ridge(x_train, y_train, PENALTY)
        return linear_prediction(intercept, weights, x_test)
    totals = [0.0] * len(x_test)
    for _ in range(BAGS):
        rows = [rng.randrange(len(x_train)) for _ in x_train]
        columns = sorted(rng.sample(range(features), min(WIDTH, features)))
        x_bag = [[x_train[row][i] for i in columns] for row in rows]
        intercept, weights = ridge(x_bag, [y_train[row] for row in rows], PENALTY)
        part = [[row[i] for i in columns] for row in x_test]
        totals = [a + b for a, b in zip(totals, linear_prediction(intercept, weights, part))]
    return [value / BAGS for value in totals]


main({"bags"}, predict)
