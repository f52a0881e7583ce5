"""The service: rankers that learn while they serve.

`live_ranker` is one ranker: its learner, and the rounds that wait for their feedback. `journal` is where nothing gets
lost. `service` has all rankers and the journal, and is what Python code in the same process talks to. `app` puts HTTP
around it.
"""
