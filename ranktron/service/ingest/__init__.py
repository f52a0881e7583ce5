"""Feedback from files and Kafka topics, with exactly-once semantics."""
