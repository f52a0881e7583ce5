"""The search page of `ranktron demo --web`, an ordinary client of the service."""
