"""What a method reports about one problem; the certificate has the last word."""

SOLVED, INFEASIBLE, STALLED = 0, 1, 2
