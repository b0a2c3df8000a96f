"""Several predictions of texts in one provider call: which can be merged, and whose rows are whose."""
