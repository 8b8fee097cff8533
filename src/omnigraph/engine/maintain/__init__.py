"""Work on stored tables that changes nothing a query can see."""
