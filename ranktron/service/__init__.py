"""The service: rankers that learn while they serve.

`desk` is one ranker: its learner and its open rounds. `log` is where nothing gets lost. `office` has all desks and the
log, and is what Python code in the same process talks to. `app` puts HTTP around it.
"""
