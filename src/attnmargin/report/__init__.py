"""Records and sentences that describe results, shared by terminal and pages."""
