"""The theorems as running code: bounds, certificates of runs, and the games that the proofs play."""
