# Ridge regression on compressed, standardised features and all their products up to a degree.
{{prelude}}

PENALTY = {{penalty}}
DEGREE = {{degree}}
CLIP = {{clip}}


def expanded(x, degree):
    columns = [x]
    if degree >= 2:
        size = x.shape[1]
        columns += [x[:, i : i + 1] * x[:, i:] for i in range(size)]
    if degree >= 3:
        columns.append(x**3)
    return np.hstack(columns)


def predict(features, x_train, y_train, x_test, rng, ablate):
    x_train, x_test = standardise(*compressed(x_train, x_test), CLIP)
    degree = 1 if ablate == "products" else DEGREE
    x_train, x_test = expanded(x_train, degree), expanded(x_test, degree)
    x_train, x_test = standardise(x_train, x_test, 20.0)
    return ridge(x_train, y_train, x_test, PENALTY)


main({"products"}, predict)
