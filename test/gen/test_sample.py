# SPDX-License-Identifier: BSD-3-Clause
"""Made-up documents are such as the commands may write."""
import pytest

import sample
from bench_program import complaints


@pytest.mark.parametrize("make", [
    sample.sample_document, sample.frameloss_document])
def test_the_schema_allows_it(make):
    document = make()
    assert complaints(document) == []
    document["trials"][0]["rx"]["lost"] = -1
    assert complaints(document) != []
