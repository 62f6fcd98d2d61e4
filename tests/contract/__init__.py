"""What others rely on, as files: each test compares the product of today with its file.

A difference is either a mistake or a decision. For a decision, write the files anew with
`CHATCORE_CONTRACT=write .venv/bin/python -m pytest tests/contract`, commit them with the change,
and add a line to the changelog.

Other parts of the contract have files and tests of their own: the OpenAPI document in
`docs/openapi.json` (`tests/api/test_schema.py`), the texts of the pages in `chatcore/web/locale`
(`tests/web/test_translations.py`), knobs and presets in `docs/policies.md`
(`tests/compaction/test_policies_reference.py`), and the programs of the docs
(`test_programs_of_docs.py` here, `tests/compaction/test_embedding_docs.py`).
"""
