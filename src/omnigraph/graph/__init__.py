"""The parts of an open graph that every operation works with, and the policy gate."""
