"""What a method says of one problem; the certificate, not the method, has the last word."""

SOLVED, INFEASIBLE, STALLED = 0, 1, 2
