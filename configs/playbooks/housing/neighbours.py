# Distance-weighted nearest neighbours on a seeded sample of the training rows; place counts more
# than the other features.
{{prelude}}

NEIGHBOURS = {{neighbours}}
PLACE = {{place}}
SAMPLE = {{sample}}


def predict(features, x_train, y_train, x_test, rng, ablate):
    x_train, x_test = standardise(*compressed(x_train, x_test), 4.0)
    weights = np.ones(x_train.shape[1])
    if ablate != "place":
        for name in ("Latitude", "Longitude"):
            index = column_of(features, name)
            if index is not None:
                weights[index] = PLACE
    x_train, x_test = x_train * weights, x_test * weights
    keep = np.sort(rng.permutation(len(x_train))[: min(SAMPLE, len(x_train))])
    x_train, y_train = x_train[keep], y_train[keep]
    own = (x_train**2).sum(axis=1)
    count = min(NEIGHBOURS, len(x_train))
    predictions = np.empty(len(x_test))
    for start in range(0, len(x_test), 500):
        rows = x_test[start : start + 500]
        squares = own - 2.0 * rows @ x_train.T + (rows**2).sum(axis=1)[:, None]
        near = np.argpartition(squares, count - 1, axis=1)[:, :count]
        distance = np.sqrt(np.maximum(np.take_along_axis(squares, near, axis=1), 0.0))
        kernel = 1.0 / (distance + 0.05)
        predictions[start : start + 500] = (kernel * y_train[near]).sum(axis=1) / kernel.sum(axis=1)
    return predictions


main({"place"}, predict)
