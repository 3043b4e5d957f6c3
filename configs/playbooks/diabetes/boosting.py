# Gradient boosting with one-split trees on binned features; every stage sees a part of the rows.
{{prelude}}

STAGES = {{stages}}
RATE = {{rate}}
BINS = {{bins}}
SHARE = {{share}}


def cuts_of(column):
    ordered = sorted(column)
    places = (len(ordered) * (i + 1) // BINS for i in range(BINS - 1))
    return sorted({ordered[min(place, len(ordered) - 1)] for place in places})


def binned(column, cuts):
    return [sum(value >= cut for cut in cuts) for value in column]


def best_split(codes, sizes, rest, rows):
    best = None
    total, count = sum(rest[row] for row in rows), len(rows)
    for feature, code in enumerate(codes):
        sums, counts = [0.0] * sizes[feature], [0] * sizes[feature]
        for row in rows:
            sums[code[row]] += rest[row]
            counts[code[row]] += 1
        left, left_count = 0.0, 0
        for cut in range(sizes[feature] - 1):
            left += sums[cut]
            left_count += counts[cut]
            right_count = count - left_count
            if left_count < 5 or right_count < 5:
                continue
            gain = left * left / left_count + (total - left) ** 2 / right_count
            if best is None or gain > best[0]:
                best = (gain, feature, cut, left / left_count, (total - left) / right_count)
    return best


def predict(x_train, y_train, x_test, rng, ablate):
    train, test = list(zip(*x_train)), list(zip(*x_test))
    cuts = [cuts_of(column) for column in train]
    sizes = [len(found) + 1 for found in cuts]
    codes = [binned(column, found) for column, found in zip(train, cuts)]
    test_codes = [binned(column, found) for column, found in zip(test, cuts)]
    start = mean(y_train)
    rest = [value - start for value in y_train]
    predictions = [start] * len(x_test)
    part = max(20, int(SHARE * len(y_train)))
    for _ in range(1 if ablate == "stages" else STAGES):
        rows = sorted(rng.sample(range(len(y_train)), min(part, len(y_train))))
        split = best_split(codes, sizes, rest, rows)
        if split is None:
            break
        _, feature, cut, low, high = split
        low, high = RATE * low, RATE * high
        rest = [value - (low if code <= cut else high) for value, code in zip(rest, codes[feature])]
        predictions = [
            value + (low if code <= cut else high)
            for value, code in zip(predictions, test_codes[feature])
        ]
    return predictions


main({"stages"}, predict)
