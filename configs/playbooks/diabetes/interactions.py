# Ridge regression on the features, their squares and their products, of which the columns that
# correlate most with the target are kept.
{{prelude}}

PENALTY = {{penalty}}
KEEP = {{keep}}


def expand(row):
    products = [row[i] * row[k] for i in range(len(row)) for k in range(i, len(row))]
    return row + products


def chosen(x_train, y_train, width, ablate):
    if ablate == "products":
        return list(range(width))
    strength = correlations(x_train, y_train)
    products = sorted(range(width, len(strength)), key=lambda i: (-abs(strength[i]), i))
    return list(range(width)) + sorted(products[:KEEP])


def predict(x_train, y_train, x_test, rng, ablate):
    width = len(x_train[0])
    x_train, x_test = standardise(x_train, x_test)
    x_train = [expand(row) for row in x_train]
    x_test = [expand(row) for row in x_test]

    def kept(rows, columns):
        return [[row[i] for i in columns] for row in rows]

    def fit():
        columns = chosen(x_train, y_train, width, ablate)
        kept_train, _ = standardise(kept(x_train, columns), kept(x_test, columns))
        intercept, weights = ridge(kept_train, y_train, PENALTY)
        return {"columns": columns, "intercept": intercept, "weights": weights}

    model = trained("model.json", fit)
    columns = model["columns"]
    _, kept_test = standardise(kept(x_train, columns), kept(x_test, columns))
    return linear_prediction(model["intercept"], model["weights"], kept_test)


main({"products"}, predict)
