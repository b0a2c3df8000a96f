"""`python -m opensearch_ml_stream.plugin` is the command line."""

from opensearch_ml_stream.plugin.cli import main

if __name__ == "__main__":
    main()
