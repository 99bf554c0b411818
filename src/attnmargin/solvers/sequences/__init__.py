"""Problems whose rows are never built: data as tokens and queries, pass by pass."""
