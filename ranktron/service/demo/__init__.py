"""The search page of `ranktron demo --web`: a client of the service, beside it and not in it."""
