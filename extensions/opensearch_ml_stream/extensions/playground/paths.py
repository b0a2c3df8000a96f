"""Where the playground's routes stand."""

UI_PATH = "/_ui"
