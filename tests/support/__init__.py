"""What tests of a graph engine need and users of one may borrow: a reference graph that is easy to
believe, stories told in text files, and ways to make a writer fail at a chosen step."""
