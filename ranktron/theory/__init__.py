"""The theorems as code: bounds, and certificates of runs."""
