"""`ranktron info` on data that are not yet ready to learn from."""

import json
from pathlib import Path


def test_missing_values_are_counted_and_not_refused(run):
    Path("some.csv").write_text("qid,label,a,b,c\n1,0,0.5,,2\n1,1,,,2\n2,2,1.5,3,2\n")
    code, out, _ = run("info", "some.csv", "--json")
    assert code == 0
    summary = json.loads(out)
    assert summary["missing"] == {"a": 1, "b": 2}
    assert (summary["lowest"], summary["highest"]) == (0.5, 3.0)
    assert set(summary["constant_features"]) == {"b", "c"}  # b has one value
    assert "3 in 2 features: a (1), b (2)" in " ".join(run("info", "some.csv")[1].split())
    code, _, err = run("info", "some.csv", "--null", "error")
    assert code == 1
    assert "column 'a' is NULL in line 3" in err
    Path("none.txt").write_text("1 qid:1 1:2\n0 qid:1 1:3\n")
    assert json.loads(run("info", "none.txt", "--json")[1])["missing"] == {}
