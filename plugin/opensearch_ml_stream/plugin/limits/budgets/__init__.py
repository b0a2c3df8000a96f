"""Budgets of tokens and money: what calls of a model have spent, counted over workers, servers and restarts."""
