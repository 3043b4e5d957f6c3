# The mean of the training targets plus a trace of seeded noise: different output, equal quality.
{{prelude}}

SCALE = {{scale}}
STREAM = {{stream}}


def predict(x_train, y_train, x_test, rng, ablate):
    centre = mean(y_train)
    if ablate == "noise":
        return [centre] * len(x_test)
    skip = [rng.random() for _ in range(STREAM)]
    del skip
    return [centre + SCALE * (rng.random() - 0.5) for _ in x_test]


main({"noise"}, predict)
