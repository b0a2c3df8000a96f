"""What it takes to live in one cluster, and on one set of documents, with a real ML Commons."""
