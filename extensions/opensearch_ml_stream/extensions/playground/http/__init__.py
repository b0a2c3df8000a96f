"""The playground at `/_ui/`: a page to try models in, its files, and what its script asks for."""
