"""What is logged."""


def disable_progress_bar() -> None:
    """Show no progress."""
