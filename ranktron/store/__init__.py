"""Rankers that survive: what a client is answered that it is stored, is stored, whatever happens next.

`journal/` is where entries, rounds and snapshots are on disk; `rankers/` are learners at work, whose open rounds wait
for feedback; `experiments/` compare rankers on live traffic. There is no event loop here, and no HTTP:
`ranktron.service` puts both around it.
"""
