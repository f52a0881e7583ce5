"""Pictures. The plotting library is imported here alone, and late."""
