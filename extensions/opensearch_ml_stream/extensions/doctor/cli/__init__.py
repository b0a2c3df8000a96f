"""The commands that find out why a stream does not arrive: `doctor`, `record`, `replay`."""
