"""Bounds beside those of the package, games that the proofs play, streams that nearly reach bounds."""
