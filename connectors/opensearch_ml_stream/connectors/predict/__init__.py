"""What a predict request says, and what its response holds."""
