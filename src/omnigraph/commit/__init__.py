"""From a change of rows to one commit: stage, lock, commit the tables, publish, compact."""
