"""The numbers that the paper of the committee perceptron prints, and its marks of significance."""

from collections.abc import Mapping

SHOWN = ("MAP", "NDCG@1", "NDCG@5", "NDCG@10")

# Table 4: MAP, NDCG@1, @5, @10.
TABLE_4: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "ohsumed-letor2": {
        "RankSVM": (0.447, 0.495, 0.458, 0.441),
        "RankBoost": (0.440, 0.498, 0.450, 0.436),
        "Com 30 A": (0.447, 0.539, 0.464, 0.450),
        "Com 30 B": (0.449, 0.558, 0.464, 0.447),
        "Pocket": (0.440, 0.510, 0.426, 0.418),
        "Average": (0.443, 0.508, 0.445, 0.429),
    },
    "td2003": {
        "RankSVM": (0.256, 0.420, 0.347, 0.341),
        "RankBoost": (0.212, 0.260, 0.279, 0.285),
        "Com 30 A": (0.247, 0.440, 0.367, 0.359),
        "Com 30 B": (0.239, 0.400, 0.371, 0.351),
        "Pocket": (0.208, 0.360, 0.303, 0.308),
        "Average": (0.143, 0.200, 0.173, 0.191),
    },
    "td2004": {
        "RankSVM": (0.350, 0.440, 0.393, 0.420),
        "RankBoost": (0.384, 0.480, 0.437, 0.472),
        "Com 30 A": (0.358, 0.440, 0.396, 0.432),
        "Com 30 B": (0.358, 0.440, 0.403, 0.434),
        "Pocket": (0.356, 0.440, 0.397, 0.437),
        "Average": (0.327, 0.413, 0.366, 0.400),
    },
}

# Table 4's marks at the 0.05 level: (better, worse, metric).
MARKS = {
    "ohsumed-letor2": (
        ("RankSVM", "RankBoost", "MAP"),
        ("Com 30 A", "RankBoost", "MAP"),
        ("Com 30 B", "RankBoost", "MAP"),
        ("Com 30 B", "RankBoost", "NDCG@1"),
        ("Com 30 B", "RankSVM", "NDCG@1"),
    ),
    "td2003": (
        *(("RankSVM", "RankBoost", metric) for metric in SHOWN),
        *(("Com 30 A", "RankBoost", metric) for metric in SHOWN),
        *(("Com 30 B", "RankBoost", metric) for metric in SHOWN if metric != "MAP"),
    ),
    "td2004": (("RankBoost", "RankSVM", "MAP"), ("RankBoost", "RankSVM", "NDCG@10")),
}

# Table 5: seconds of training, folds 1 to 5.
TABLE_5 = {
    "committee of 20": (462.85, 527.14, 489.62, 414.18, 375.01),
    "RankSVM": (27487.40, 35887.08, 28584.22, 7328.77, 6902.77),
}
FACTOR = sum(TABLE_5["RankSVM"]) / sum(TABLE_5["committee of 20"])
