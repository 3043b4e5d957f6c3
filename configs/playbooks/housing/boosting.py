# Gradient boosting on binned features with balanced trees, grown level by level from histograms.
{{prelude}}

STAGES = {{stages}}
RATE = {{rate}}
DEPTH = {{depth}}
BINS = {{bins}}
SHARE = {{share}}


def grow(codes, rest, rows, depth):
    """Splits per level and node: (features, cuts); then leaf values."""
    node = np.zeros(len(rows), dtype=np.int64)
    target = rest[rows]
    levels = []
    for level in range(depth):
        nodes = 1 << level
        gain = np.full(nodes, -np.inf)
        feature, cut = np.zeros(nodes, dtype=np.int64), np.full(nodes, BINS, dtype=np.int64)
        for index in range(codes.shape[1]):
            key = node * BINS + codes[rows, index]
            sums = np.bincount(key, weights=target, minlength=nodes * BINS).reshape(nodes, BINS)
            counts = np.bincount(key, minlength=nodes * BINS).reshape(nodes, BINS)
            left, left_count = sums.cumsum(axis=1)[:, :-1], counts.cumsum(axis=1)[:, :-1]
            right = sums.sum(axis=1, keepdims=True) - left
            right_count = counts.sum(axis=1, keepdims=True) - left_count
            score = left**2 / (left_count + 1.0) + right**2 / (right_count + 1.0)
            score = np.where((left_count < 20) | (right_count < 20), -np.inf, score)
            best = score.argmax(axis=1)
            value = score[np.arange(nodes), best]
            better = value > gain
            gain = np.where(better, value, gain)
            feature, cut = np.where(better, index, feature), np.where(better, best, cut)
        levels.append((feature, cut))
        node = step(codes, rows, node, feature, cut)
    leaves = 1 << depth
    sums = np.bincount(node, weights=target, minlength=leaves)
    counts = np.bincount(node, minlength=leaves)
    return levels, sums / (counts + 1.0)


def step(codes, rows, node, feature, cut):
    return 2 * node + (codes[rows, feature[node]] > cut[node])


def apply(codes, levels, values):
    rows = np.arange(len(codes))
    node = np.zeros(len(codes), dtype=np.int64)
    for feature, cut in levels:
        node = step(codes, rows, node, feature, cut)
    return values[node]


def predict(features, x_train, y_train, x_test, rng, ablate):
    cuts = [
        np.unique(np.quantile(column, np.linspace(0.0, 1.0, BINS + 1)[1:-1])) for column in x_train.T
    ]

    def binned(x):
        return np.column_stack([np.searchsorted(cut, c, side="right") for cut, c in zip(cuts, x.T)])

    codes, test_codes = binned(x_train), binned(x_test)
    start = y_train.mean()
    rest = y_train - start
    predictions = np.full(len(x_test), start)
    part = max(100, int(SHARE * len(y_train)))
    depth = 1 if ablate == "depth" else DEPTH
    for _ in range(STAGES):
        rows = np.sort(rng.permutation(len(y_train))[: min(part, len(y_train))])
        levels, values = grow(codes, rest, rows, depth)
        rest = rest - RATE * apply(codes, levels, values)
        predictions = predictions + RATE * apply(test_codes, levels, values)
    return predictions


main({"depth"}, predict)
