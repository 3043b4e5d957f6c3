# Ridge regression on the features, their squares and their products, of which the columns that
# correlate most with the target are kept.
{{prelude}}

PENALTY = {{penalty}}
KEEP = {{keep}}


def expand(row):
    products = [row[i] * row[k] for i in range(len(row)) for k in range(i, len(row))]
    return row + products


def predict(x_train, y_train, x_test, rng, ablate):
    x_train, x_test = standardise(x_train, x_test)
    width = len(x_train[0])
    if ablate == "products":
        chosen = list(range(width))
    else:
        x_train = [expand(row) for row in x_train]
        x_test = [expand(row) for row in x_test]
        strength = correlations(x_train, y_train)
        products = sorted(range(width, len(strength)), key=lambda i: (-abs(strength[i]), i))
        chosen = list(range(width)) + sorted(products[:KEEP])
    x_train = [[row[i] for i in chosen] for row in x_train]
    x_test = [[row[i] for i in chosen] for row in x_test]
    x_train, x_test = standardise(x_train, x_test)
    intercept, weights = ridge(x_train, y_train, PENALTY)
    return linear_prediction(intercept, weights, x_test)


main({"products"}, predict)
