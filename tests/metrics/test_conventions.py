import pytest

from ranktron.metrics.conventions import CONVENTIONS, SUMS


@pytest.mark.parametrize("name", CONVENTIONS)
def test_a_sum_over_no_relevant_document_is_zero_under_every_convention(name):
    convention = CONVENTIONS[name]
    assert {convention.empty_of(each) for each in SUMS} == {0.0}
    assert convention.empty_of("p") == convention.exceptions.get("p", convention.empty)
