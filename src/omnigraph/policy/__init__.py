"""Policies: who may do what on which branch. A YAML document becomes Cedar rules that fill the gate."""
