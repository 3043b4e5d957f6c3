# Ridge regression on standardised features whose extremes are clipped.
{{prelude}}

PENALTY = {{penalty}}
CLIP = {{clip}}


def predict(x_train, y_train, x_test, rng, ablate):
    x_train, x_test = standardise(x_train, x_test)

    def clipped(rows):
        return [[max(-CLIP, min(CLIP, value)) for value in row] for row in rows]

    x_train, x_test = clipped(x_train), clipped(x_test)
    penalty = 0.0 if ablate == "shrinkage" else PENALTY
    intercept, weights = trained("model.json", lambda: ridge(x_train, y_train, penalty))
    return linear_prediction(intercept, weights, x_test)


main({"shrinkage"}, predict)
