"""The playground, the page `/_ui/`."""
